// SPDX-License-Identifier: Apache-2.0
#include "core/account.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

enum reach { REACH_ALL, REACH_NOT_IT, REACH_NO_DIR, REACH_NO_BENCH, REACH_NO_MPI };

static const char *const reach_texts[] = {
    [REACH_NOT_IT] = "the daemon cannot become it",
    [REACH_NO_DIR] = "it cannot reach the run directory",
    [REACH_NO_BENCH] = "it cannot run numa_bench, nor a copy in the run directory (perhaps mounted "
                       "noexec)",
    [REACH_NO_MPI] = "it cannot run mpirun or numactl",
};

// Runs in a forked child that has become the account: what it can reach is tried, not guessed.
static enum reach try_access(uid_t uid, gid_t gid, const char *run_dir,
                             const struct launch_paths *p)
{
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return REACH_NOT_IT;
    if (access(run_dir, X_OK) < 0)
        return REACH_NO_DIR;
    if (p && access(p->bench, R_OK | X_OK) < 0)
        return REACH_NO_BENCH;
    if (p && ((*p->mpirun && access(p->mpirun, X_OK) < 0) ||
              (*p->numactl && access(p->numactl, X_OK) < 0)))
        return REACH_NO_MPI;
    return REACH_ALL;
}

static enum reach reach(uid_t uid, gid_t gid, const char *run_dir, const struct launch_paths *p)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit((int)try_access(uid, gid, run_dir, p));
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
        WEXITSTATUS(status) > REACH_NO_MPI)
        return REACH_NOT_IT;
    return (enum reach)WEXITSTATUS(status);
}

// --- a copy of the bench

static int copy_file(const char *from, const char *to)
{
    struct stat st;
    CLEANUP_FD int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0 || fstat(in, &st) < 0 || (unlink(to) < 0 && errno != ENOENT))
        return -1;
    CLEANUP_FD int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
    if (out < 0)
        return -1;
    for (off_t left = st.st_size; left > 0;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        if (n <= 0)
            return -1;
        left -= n;
    }
    return fchmod(out, 0755); // whatever the umask
}

static bool copy_path(char *out, size_t room, const char *dir, const char *program,
                      const char *suffix)
{
    const char *slash = strrchr(program, '/');
    return slash && (size_t)snprintf(out, room, "%s%s%s", dir, slash, suffix) < room;
}

// The bench looks for its module of MPI in its own folder, so that comes along where there is one.
static bool copy_bench(struct launch_paths *p, const char *dir)
{
    char program[sizeof p->bench], module[300], to[300];
    if (!copy_path(program, sizeof program, dir, p->bench, "") ||
        !copy_path(to, sizeof to, dir, p->bench, "_mpi.so") ||
        snprintf(module, sizeof module, "%s_mpi.so", p->bench) >= (int)sizeof module)
        return false;
    if (copy_file(p->bench, program) < 0 ||
        (access(module, F_OK) == 0 && copy_file(module, to) < 0))
        return false;
    memcpy(p->bench, program, sizeof p->bench);
    return true;
}

void account_forget_copy(const struct launch_paths *p, const char *run_dir)
{
    char path[300];
    size_t n = strlen(run_dir);
    const char *slash = strrchr(p->bench, '/');
    if (!slash || (size_t)(slash - p->bench) != n || strncmp(p->bench, run_dir, n) != 0)
        return;
    unlink(p->bench);
    if (copy_path(path, sizeof path, run_dir, p->bench, "_mpi.so"))
        unlink(path);
}

// --- which account

static void be_ourselves(struct account *a)
{
    *a = (struct account){.uid = geteuid(), .gid = getegid()};
    const struct passwd *pw = getpwuid(a->uid);
    if (pw)
        snprintf(a->name, sizeof a->name, "%s", pw->pw_name);
    else
        snprintf(a->name, sizeof a->name, "%u", (unsigned)a->uid);
    snprintf(a->text, sizeof a->text, "%s", a->name);
}

static void be_root(struct account *a, const struct passwd *pw)
{
    *a = (struct account){.uid = pw->pw_uid, .gid = pw->pw_gid, .root = true};
    snprintf(a->name, sizeof a->name, "%s", pw->pw_name);
    snprintf(a->text, sizeof a->text, "%s (as told by --job-user)", pw->pw_name);
}

static enum reach reach_with_copy(const struct account *a, const char *run_dir,
                                  struct launch_paths *paths)
{
    enum reach got = reach(a->uid, a->gid, run_dir, paths);
    struct launch_paths copied;
    if (got != REACH_NO_BENCH)
        return got;
    copied = *paths;
    if (!copy_bench(&copied, run_dir))
        return got;
    got = reach(a->uid, a->gid, run_dir, &copied);
    if (got != REACH_ALL) {
        account_forget_copy(&copied, run_dir);
        return got;
    }
    log_event(LOG_LVL_INFO, "runner.bench_copied",
              "account=%s from=%s to=%s text=\"the account cannot reach the original\"", a->name,
              paths->bench, copied.bench);
    *paths = copied;
    return REACH_ALL;
}

static bool try_account(struct account *a, const struct passwd *pw, const char *run_dir,
                        struct launch_paths *paths, char *why, size_t room)
{
    struct account got = {.uid = pw->pw_uid, .gid = pw->pw_gid};
    snprintf(got.name, sizeof got.name, "%s", pw->pw_name);
    snprintf(got.text, sizeof got.text, "%s", pw->pw_name);
    enum reach rc = reach_with_copy(&got, run_dir, paths);
    if (rc != REACH_ALL) {
        snprintf(why, room, "the account is %s, and %s", got.name, reach_texts[rc]);
        return false;
    }
    *a = got;
    return true;
}

int account_find(struct account *a, const char *user, const char *run_dir,
                 struct launch_paths *paths, struct err *err)
{
    char why[200] = "there is no account numaprobe or nobody";
    const char *const names[] = {user ? user : "numaprobe", user ? NULL : "nobody"};
    be_ourselves(a);
    if (geteuid() != 0)
        return 0;
    for (size_t i = 0; i < COUNT_OF(names) && names[i]; i++) {
        const struct passwd *pw = getpwnam(names[i]);
        if (!pw && user)
            return err_set(err, ERR_USAGE, "job-user", "there is no account \"%s\"", user);
        if (pw && pw->pw_uid == 0 && user) {
            be_root(a, pw);
            return 0;
        }
        if (pw && pw->pw_uid != 0 && try_account(a, pw, run_dir, paths, why, sizeof why))
            return 0;
    }
    *a = (struct account){.uid = (uid_t)-1, .gid = (gid_t)-1};
    snprintf(a->text, sizeof a->text, "none (%s)", why);
    return err_set(err, ERR_UNAVAILABLE, "",
                   "measuring processes do not run as root, but %s. Name another by --job-user; "
                   "--job-user=root lets them",
                   why);
}

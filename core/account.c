// SPDX-License-Identifier: Apache-2.0
#include "core/account.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/child.h"
#include "core/lookup.h"

enum { REACH_MS = 5000 }; // a folder on the network may not answer

enum reach {
    REACH_ALL,
    REACH_NOT_IT,
    REACH_NO_DIR,
    REACH_NO_BENCH,
    REACH_NO_MPI,
    REACH_ROOT,
    REACH_UNKNOWN
};

static const char *const reach_texts[] = {
    [REACH_NOT_IT] = "the daemon cannot become it",
    [REACH_NO_DIR] = "it cannot reach the run directory",
    [REACH_NO_BENCH] = "it cannot run numa_bench, nor a copy in the run directory (perhaps mounted "
                       "noexec)",
    [REACH_NO_MPI] = "it cannot run mpirun or numactl",
    [REACH_ROOT] = "it is root's",
    [REACH_UNKNOWN] = "what it can reach cannot be found out",
};

struct attempt {
    uid_t uid;
    gid_t gid;
    const char *run_dir;
    const struct launch_paths *paths; // or NULL
};

// Runs in a forked child that has become the account: what it can reach is tried, not guessed.
static int try_access(void *arg)
{
    const struct attempt *t = arg;
    const struct launch_paths *p = t->paths;
    if (setgroups(0, NULL) < 0 || setresgid(t->gid, t->gid, t->gid) < 0 ||
        setresuid(t->uid, t->uid, t->uid) < 0)
        return REACH_NOT_IT;
    if (access(t->run_dir, X_OK) < 0)
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
    int rc = child_run(try_access, &(struct attempt){uid, gid, run_dir, p}, REACH_MS, NULL);
    return rc < 0 || rc > REACH_NO_MPI ? REACH_UNKNOWN : (enum reach)rc;
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
    struct lookup found;
    *a = (struct account){.uid = geteuid(), .gid = getegid()};
    if (lookup_user_id(&found, a->uid, NULL) == 0)
        snprintf(a->name, sizeof a->name, "%s", found.name);
    else
        snprintf(a->name, sizeof a->name, "%u", (unsigned)a->uid);
    snprintf(a->text, sizeof a->text, "%s", a->name);
}

static void be_root(struct account *a, const struct lookup *found)
{
    *a = (struct account){.uid = found->uid, .gid = found->gid, .root = true};
    snprintf(a->name, sizeof a->name, "%s", found->name);
    snprintf(a->text, sizeof a->text, "%s (as told by --job-user)", found->name);
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

static int become(struct account *a, const struct lookup *found, const char *run_dir,
                  struct launch_paths *paths, struct err *why)
{
    struct account got = {.uid = found->uid, .gid = found->gid};
    snprintf(got.name, sizeof got.name, "%s", found->name);
    snprintf(got.text, sizeof got.text, "%s", found->name);
    enum reach rc = got.uid == 0 ? REACH_ROOT : reach_with_copy(&got, run_dir, paths);
    if (rc != REACH_ALL)
        return err_set(why, ERR_FORBIDDEN, "", "the account is %s, and %s", got.name,
                       reach_texts[rc]);
    *a = got;
    return 0;
}

// For a daemon that is root. ERR_NOT_FOUND and ERR_FORBIDDEN: not this one, perhaps another.
static int use(struct account *a, const char *name, bool told, const char *run_dir,
               struct launch_paths *paths, struct err *why)
{
    struct lookup found;
    if (lookup_user(&found, name, why) < 0)
        return why->code == ERR_NOT_FOUND
                   ? err_set(why, ERR_NOT_FOUND, "", "there is no account \"%s\"", name)
                   : err_prefix(why, "the account %s cannot be looked up", name);
    if (found.uid == 0 && told) {
        be_root(a, &found);
        return 0;
    }
    return become(a, &found, run_dir, paths, why);
}

static int choose(struct account *a, const char *run_dir, struct launch_paths *paths,
                  struct err *why)
{
    struct err other;
    if (use(a, "numaprobe", false, run_dir, paths, why) == 0)
        return 0;
    if (why->code != ERR_NOT_FOUND && why->code != ERR_FORBIDDEN)
        return -1;
    if (use(a, "nobody", false, run_dir, paths, &other) == 0)
        return 0;
    if (other.code != ERR_NOT_FOUND)
        *why = other;
    else if (why->code == ERR_NOT_FOUND)
        err_set(why, ERR_NOT_FOUND, "", "there is no account numaprobe or nobody");
    return -1;
}

int account_find(struct account *a, const char *user, const char *run_dir,
                 struct launch_paths *paths, struct err *err)
{
    struct err why;
    if (geteuid() != 0) {
        be_ourselves(a);
        return 0;
    }
    int rc = user ? use(a, user, true, run_dir, paths, &why) : choose(a, run_dir, paths, &why);
    if (rc == 0)
        return 0;
    *a = (struct account){.uid = (uid_t)-1, .gid = (gid_t)-1};
    snprintf(a->text, sizeof a->text, "none (%s)", why.text);
    if (user && why.code == ERR_NOT_FOUND)
        return err_set(err, ERR_USAGE, "job-user", "%s", why.text);
    return err_set(err, ERR_UNAVAILABLE, "",
                   "measuring processes do not run as root, but %s. Name another by --job-user; "
                   "--job-user=root lets them",
                   why.text);
}

// SPDX-License-Identifier: Apache-2.0
// The choice is tried, not computed: a forked child becomes the account and tries what ranks will
// need. Where the bench lies in a folder that the account cannot enter, a copy of it is made in the
// directory of runs.
#include "core/launch/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/os/become.h"
#include "core/os/child.h"
#include "core/os/nss.h"

enum { REACH_MS = 5000 }; // a folder on the network may not answer

enum reach { REACH_ALL, REACH_NOT_IT, REACH_NO_DIR, REACH_NO_BENCH, REACH_ROOT, REACH_UNKNOWN };

static const char *const reach_texts[] = {
    [REACH_NOT_IT] = "the daemon cannot become it",
    [REACH_NO_DIR] = "it cannot reach the run directory",
    [REACH_NO_BENCH] = "it cannot run numa_bench, nor a copy in the run directory (perhaps mounted "
                       "noexec)",
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
    const char *step;
    if (become(&(struct become){t->uid, t->gid, false}, &step) < 0)
        return REACH_NOT_IT;
    if (access(t->run_dir, X_OK) < 0)
        return REACH_NO_DIR;
    if (p && access(p->bench, R_OK | X_OK) < 0)
        return REACH_NO_BENCH;
    return REACH_ALL;
}

static enum reach reach(uid_t uid, gid_t gid, const char *run_dir, const struct launch_paths *p)
{
    int rc = child_run(try_access, &(struct attempt){uid, gid, run_dir, p}, REACH_MS, NULL);
    return rc < 0 || rc > REACH_NO_BENCH ? REACH_UNKNOWN : (enum reach)rc;
}

// --- a copy of the bench

// Made by copy_file from a file that has not changed since.
static bool is_copy_of(const char *to, const struct stat *from)
{
    struct stat st;
    return lstat(to, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 07777) == 0755 && st.st_size == from->st_size &&
           st.st_mtim.tv_sec == from->st_mtim.tv_sec && st.st_mtim.tv_nsec == from->st_mtim.tv_nsec;
}

static int account_write_copy(int in, const struct stat *from, const char *to)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, from->st_mtim};
    CLEANUP_FD int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
    if (out < 0)
        return -1;
    for (off_t left = from->st_size; left > 0;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        if (n <= 0)
            return -1;
        left -= n;
    }
    return fchmod(out, 0755) < 0 ? -1 : futimens(out, times); // whatever the umask
}

// Renamed into its place, where a rank may just be about to start the one that is there. 1: it was
// there already.
static int copy_file(const char *from, const char *to)
{
    struct stat st;
    char made[310];
    CLEANUP_FD int in = open(from, O_RDONLY | O_CLOEXEC);
    snprintf(made, sizeof made, "%s.new", to);
    if (in < 0 || fstat(in, &st) < 0)
        return -1;
    if (is_copy_of(to, &st))
        return 1;
    if (unlink(made) < 0 && errno != ENOENT)
        return -1;
    return account_write_copy(in, &st, made) < 0 ? -1 : rename(made, to);
}

static bool copy_path(char *out, size_t room, const char *dir, const char *program,
                      const char *suffix)
{
    const char *slash = strrchr(program, '/');
    return slash && (size_t)snprintf(out, room, "%s%s%s", dir, slash, suffix) < room;
}

// The bench looks for its module of MPI in its own folder, so that comes along where there is one.
static bool copy_bench(struct launch_paths *p, const char *dir, bool *copied)
{
    char program[sizeof p->bench], module[300], to[300];
    if (!copy_path(program, sizeof program, dir, p->bench, "") ||
        !copy_path(to, sizeof to, dir, p->bench, "_mpi.so") ||
        snprintf(module, sizeof module, "%s_mpi.so", p->bench) >= (int)sizeof module)
        return false;
    int bench = copy_file(p->bench, program);
    int beside = access(module, F_OK) == 0 ? copy_file(module, to) : 1;
    if (bench < 0 || beside < 0)
        return false;
    *copied = !bench || !beside;
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
    snprintf(a->text, sizeof a->text, "%s (as --job-user says)", found->name);
}

static enum reach reach_with_copy(const struct account *a, const char *run_dir,
                                  struct launch_paths *paths)
{
    enum reach got = reach(a->uid, a->gid, run_dir, paths);
    struct launch_paths copy;
    bool copied;
    if (got != REACH_NO_BENCH)
        return got;
    copy = *paths;
    if (!copy_bench(&copy, run_dir, &copied))
        return got;
    got = reach(a->uid, a->gid, run_dir, &copy);
    if (got != REACH_ALL) {
        account_forget_copy(&copy, run_dir);
        return got;
    }
    if (copied)
        log_event(LOG_LVL_INFO, "runner.bench_copied",
                  "account=%s from=%s to=%s text=\"the account cannot reach the original\"",
                  a->name, paths->bench, copy.bench);
    *paths = copy;
    return REACH_ALL;
}

static int take_account(struct account *a, const struct lookup *found, const char *run_dir,
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
    return take_account(a, &found, run_dir, paths, why);
}

static int account_choose(struct account *a, const char *run_dir, struct launch_paths *paths,
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
    int rc =
        user ? use(a, user, true, run_dir, paths, &why) : account_choose(a, run_dir, paths, &why);
    if (rc == 0)
        return 0;
    *a = (struct account){.uid = (uid_t)-1, .gid = (gid_t)-1};
    snprintf(a->text, sizeof a->text, "none (%s)", why.text);
    if (user && why.code == ERR_NOT_FOUND)
        return err_set(err, ERR_USAGE, "job_user", "job_user: %s", why.text);
    return err_set(err, ERR_UNAVAILABLE, "",
                   "measuring processes do not run as root, but %s. Name another by --job-user; "
                   "--job-user=root lets them",
                   why.text);
}

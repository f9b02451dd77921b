// SPDX-License-Identifier: Apache-2.0
// The supervisor with a program that grows a tree of processes as nasty as they come: sessions and
// process groups of their own, deaf to SIGTERM. This test program is that program too.
#include "core/launch/supervisor_main.h"
#include "tests/unit/tap.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/launch/supervisor.h"
#include "core/launch/supervisor_job.h"
#include "core/os/host_lock.h"
#include "core/os/processes.h"
#include "core/run/dir.h"
#include "tests/unit/core/dir.h"

static char base[64];
static struct account account;
static int lock = -1; // what trials hand on
static const char *group = "";
static bool isolated;

// --- the program under supervision: test_supervisor MODE FIFO

static void ready(const char *fifo)
{
    int fd = open(fifo, O_WRONLY);
    ssize_t ignored = write(fd, "r", 1);
    (void)ignored;
    close(fd);
}

// Each process of a generation forks two; a child goes on in the loop with the next generation.
static void deaf_tree(int depth)
{
    signal(SIGTERM, SIG_IGN);
    for (int made = 0; depth > 0 && made < 2;) {
        if (fork() != 0) {
            made++;
            continue;
        }
        if (made)
            setsid();
        else
            setpgid(0, 0);
        depth--;
        made = 0;
    }
    for (;;)
        pause();
}

static int program(const char *mode, const char *fifo)
{
    if (strcmp(mode, "exit") == 0)
        return 7;
    if (strcmp(mode, "orphan") == 0) {
        if (fork() == 0)
            deaf_tree(1);
        return 0;
    }
    if (strcmp(mode, "who") == 0) {
        char text[64] = "";
        int fd = open("/proc/self/oom_score_adj", O_RDONLY);
        ssize_t n = read(fd, text, sizeof text - 1);
        printf("uid=%d lock=%d oom=%.*s", (int)getuid(), fcntl(SUPERVISOR_LOCK_FD, F_GETFD) != -1,
               (int)(n > 0 ? n : 0), text);
        return getenv("PATH") == NULL && getenv("SECRET") ? 0 : 3;
    }
    if (strcmp(mode, "stuck") == 0 && fork() == 0)
        return 0; // and is never buried
    if (strcmp(mode, "tree") == 0 && fork() == 0)
        deaf_tree(3);
    ready(fifo);
    for (;;)
        pause();
}

// --- the daemon's side

struct trial {
    struct run_dir dir;
    struct supervised s;
    struct launch launch;
};

static void trial_start(struct trial *t, const char *mode, int64_t deadline_s)
{
    struct err err = {0};
    char fifo[420], entry[80], self[300] = "";
    char secret[] = "SECRET=1";
    *t = (struct trial){0};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 ||
        run_dir_make(&t->dir, base, 1, &account, &err) < 0)
        abort();
    snprintf(fifo, sizeof fifo, "%s/records", t->dir.path);
    snprintf(entry, sizeof entry, "NUMAPROBE_NONCE=%s", t->dir.nonce);
    char *words = strdup(mode);
    char *argv[] = {self, words, fifo, NULL}, *envp[] = {entry, secret, NULL};
    t->launch = (struct launch){argv, envp};
    struct supervisor_job job = {.dir = t->dir.path,
                                 .deadline_s = deadline_s,
                                 .uid = account.uid,
                                 .gid = account.gid,
                                 .isolated = isolated,
                                 .launch = &t->launch,
                                 .group = group,
                                 .lock = lock};
    if (supervisor_spawn(&t->s, &job, &err) < 0)
        printf("# %s\n", err.text);
    free(words);
}

enum { LIMIT_MS = 120000 }; // ends what hangs: a busy machine takes long for anything

static bool readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) > 0;
}

static bool trial_ready(struct trial *t)
{
    char byte;
    return readable(t->dir.fifo, LIMIT_MS) && read(t->dir.fifo, &byte, 1) == 1;
}

static struct supervisor_report report_of(struct trial *t)
{
    struct supervisor_report r = {.how = SUP_NOT_STARTED, .status = -1};
    struct err err = {0};
    if (!readable(t->s.control, LIMIT_MS) || supervisor_read_report(&t->s, &r, &err) != 1)
        printf("# no report: %s\n", err.text);
    return r;
}

static bool gone(const char *path)
{
    return access(path, F_OK) < 0 && errno == ENOENT;
}

// Whatever is left of the trial was left by the supervisor.
static void trial_end(struct trial *t, const char *what)
{
    CHECK(supervisor_reap(&t->s, LIMIT_MS), "%s: the supervisor ends", what);
    CHECK(gone(t->dir.path), "%s: no directory is left", what);
    CHECK(proc_kill_nonce(t->dir.nonce) == 0 && proc_kill_below(0) == 0, "%s: no process is left",
          what);
    close(t->dir.fifo);
}

static void read_log(struct trial *t, char *out, size_t room)
{
    char path[420];
    snprintf(path, sizeof path, "%s/log", t->dir.path);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, out, room - 1);
    out[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        close(fd);
}

static void test_ends(void)
{
    struct trial t;
    struct supervisor_report r;
    char log[256], want[64];
    trial_start(&t, "exit", 10);
    r = report_of(&t);
    CHECK(r.how == SUP_EXITED && r.status == 7, "the exit status comes back");
    CHECK(!gone(t.dir.path), "the directory stays until the daemon lets go");
    trial_end(&t, "exit");
    trial_start(&t, "orphan", 10);
    r = report_of(&t);
    CHECK(r.how == SUP_EXITED && r.status == 0 && r.killed >= 1, "orphans are killed: %d",
          r.killed);
    trial_end(&t, "orphan");
    trial_start(&t, "who", 10);
    r = report_of(&t);
    read_log(&t, log, sizeof log);
    snprintf(want, sizeof want, "uid=%d lock=0 oom=1000", (int)account.uid);
    CHECK(r.status == 0 && strstr(log, want), "its account, its environment: %s", log);
    trial_end(&t, "who");
}

static void test_stop(void)
{
    struct trial t;
    trial_start(&t, "tree", 60);
    CHECK(trial_ready(&t), "a tree of deaf processes");
    int64_t start = clock_mono_ms();
    supervisor_stop(&t.s);
    struct supervisor_report r = report_of(&t);
    CHECK(r.how == SUP_STOPPED, "stopped after %d ms, %d killed", (int)(clock_mono_ms() - start),
          r.killed);
    trial_end(&t, "stop");
    trial_start(&t, "tree", 1); // on a busy machine it is not whole by then
    CHECK(report_of(&t).how == SUP_DEADLINE, "the deadline");
    trial_end(&t, "deadline");
    trial_start(&t, "tree", 60);
    CHECK(trial_ready(&t) && kill(t.s.pid, SIGTERM) == 0 && report_of(&t).how == SUP_STOPPED,
          "SIGTERM to the supervisor");
    trial_end(&t, "term");
    trial_start(&t, "stuck", 60);
    CHECK(trial_ready(&t) && readable(t.s.control, LIMIT_MS) && report_of(&t).how == SUP_STUCK,
          "it goes on although its processes have ended");
    trial_end(&t, "stuck");
}

static void test_not_started(void)
{
    struct trial t;
    char none[] = "/nonexistent/mpirun";
    char *argv[] = {none, NULL}, *envp[] = {NULL};
    struct launch l = {argv, envp};
    struct err err;
    if (run_dir_make(&t.dir, base, 1, &account, &err) < 0)
        abort();
    struct supervisor_job job = {.dir = t.dir.path,
                                 .deadline_s = 10,
                                 .uid = account.uid,
                                 .gid = account.gid,
                                 .launch = &l,
                                 .group = "",
                                 .lock = -1};
    CHECK_INT(supervisor_spawn(&t.s, &job, &err), 0, "spawned");
    struct supervisor_report r = report_of(&t);
    CHECK(r.how == SUP_NOT_STARTED && r.status == ENOENT, "exec's failure comes back");
    trial_end(&t, "not started");
}

// The daemon is gone or has forgotten it, the run is not: nobody else may measure yet.
static void test_lock(void)
{
    struct trial t;
    char path[100], log[256];
    snprintf(path, sizeof path, "%s/lock", base);
    lock = host_lock_take(path);
    CHECK(lock >= 0, "the lock of the host");
    trial_start(&t, "who", 10);
    report_of(&t);
    read_log(&t, log, sizeof log);
    CHECK(strstr(log, "lock=0"), "which the ranks do not get: %s", log);
    close(lock);
    lock = -1;
    CHECK(host_lock_take(path) == HOST_LOCK_TAKEN, "the supervisor holds it");
    trial_end(&t, "lock");
    int next = host_lock_take(path);
    CHECK(next >= 0, "until it is gone");
    close(next);
}

static void read_of(const char *folder, const char *file, char *out, size_t room)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    *out = '\0';
    file_read_text(path, out, room);
}

// A group that is a folder: what the kernel would be told stands in its files.
static void test_group(void)
{
    struct trial t;
    char folder[100], text[64];
    snprintf(folder, sizeof folder, "%s/group", base);
    dir_write(base, "group/cgroup.procs", "");
    dir_write(base, "group/cgroup.kill", "");
    group = folder;
    trial_start(&t, "tree", 60);
    CHECK(trial_ready(&t), "a run in a group");
    read_of(folder, "cgroup.procs", text, sizeof text);
    CHECK_STR(text, "0", "mpirun went in by itself, so all below it is there");
    read_of(folder, "cgroup.kill", text, sizeof text);
    CHECK_STR(text, "", "and it lives");
    supervisor_stop(&t.s);
    CHECK(report_of(&t).how == SUP_STOPPED, "stopped");
    read_of(folder, "cgroup.kill", text, sizeof text);
    CHECK_STR(text, "1", "the group is killed as a whole");
    trial_end(&t, "group");
    snprintf(folder, sizeof folder, "%s/empty", base);
    mkdir(folder, 0700);
    trial_start(&t, "exit", 10);
    CHECK(report_of(&t).how == SUP_NOT_STARTED, "without its group a run does not start");
    trial_end(&t, "no group");
    CHECK(gone(folder), "the group is removed");
    group = "";
}

// A daemon of our own that is killed; its supervisor becomes our child, for we are a subreaper.
static void test_daemon_killed(void)
{
    int p[2];
    struct trial t = {0};
    if (pipe(p) < 0)
        abort();
    pid_t daemon = fork();
    if (daemon == 0) {
        trial_start(&t, "tree", 60);
        bool ok = trial_ready(&t);
        ssize_t ignored = write(p[1], &t, sizeof t);
        (void)ignored;
        (void)ok;
        for (;;)
            pause();
    }
    CHECK(read(p[0], &t, sizeof t) == sizeof t, "a daemon with a run");
    kill(daemon, SIGKILL);
    int status;
    waitpid(daemon, &status, 0);
    CHECK(waitpid(t.s.pid, &status, 0) == t.s.pid && WIFEXITED(status), "its supervisor ends");
    CHECK(gone(t.dir.path), "and has removed the directory");
    CHECK_INT(proc_kill_nonce(t.dir.nonce), 0, "and every process");
    close(p[0]);
    close(p[1]);
}

static pid_t child_of(pid_t parent)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    return n > 0 ? atoi(text) : 0;
}

static void bury_all(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

// Killed with SIGKILL at a random moment between its start and 40 ms later: the random wait is the
// test, and ends early if the supervisor does.
static void test_random_kills(int times)
{
    int left_dirs = 0, left_processes = 0, bad_reports = 0;
    srandom(1);
    for (int i = 0; i < times; i++) {
        struct trial t;
        struct err err;
        trial_start(&t, i % 3 ? "tree" : "hang", 60);
        readable(t.s.pidfd, (int)(random() % 40));
        pid_t mpirun = child_of(t.s.pid);
        if (i % 2 && mpirun > 0) {
            kill(mpirun, SIGKILL);
            bad_reports += report_of(&t).how != SUP_SIGNALED;
            supervisor_reap(&t.s, LIMIT_MS);
        } else {
            kill(t.s.pid, SIGKILL);
            supervisor_reap(&t.s, LIMIT_MS);
            proc_kill_below(SIGKILL); // what the daemon does then
            proc_kill_nonce(t.dir.nonce);
            tree_remove(t.dir.path, &err);
        }
        bury_all();
        left_dirs += !gone(t.dir.path);
        left_processes += proc_kill_nonce(t.dir.nonce);
        close(t.dir.fifo);
    }
    bury_all();
    CHECK_INT(left_dirs, 0, "%d kills: no directory is left", times);
    CHECK_INT(left_processes, 0, "%d kills: no process is left", times);
    CHECK_INT(bad_reports, 0, "mpirun killed is reported as that");
}

// Both killed: a daemon that starts finds the nonce in the name of the directory.
static void test_restart_sweeps(void)
{
    struct trial t;
    trial_start(&t, "tree", 60);
    CHECK(trial_ready(&t), "a run");
    kill(t.s.pid, SIGKILL);
    supervisor_reap(&t.s, LIMIT_MS);
    char decoy[128];
    snprintf(decoy, sizeof decoy, "%s/mine", base);
    mkdir(decoy, 0700);
    CHECK(run_dir_sweep(base) == 1 && gone(t.dir.path), "one directory is swept");
    CHECK(!gone(decoy), "what is not a run's directory stays");
    bury_all();
    CHECK_INT(proc_kill_nonce(t.dir.nonce), 0, "no process is left");
    close(t.dir.fifo);
}

// Links in a run's directory are removed, not followed.
static void test_links(void)
{
    char tree[128], path[160], outside[128], link[200];
    struct err err;
    snprintf(tree, sizeof tree, "%s/tree", base);
    snprintf(outside, sizeof outside, "%s/outside", base);
    snprintf(path, sizeof path, "%s/a", tree);
    mkdir(tree, 0700);
    mkdir(path, 0700);
    close(open(outside, O_CREAT | O_WRONLY, 0600));
    snprintf(link, sizeof link, "%s/link", path);
    CHECK_INT(symlink(base, link), 0, "a link out of it");
    CHECK(tree_remove(tree, &err) == 0 && gone(tree), "removed");
    CHECK(!gone(outside), "what the link led to is untouched");
    CHECK_INT(tree_remove(tree, &err), 0, "what is gone is fine");
}

int main(int argc, char **argv)
{
    struct err err;
    if (argc > 1 && strcmp(argv[1], "--supervise") == 0)
        return supervisor_main(argc, argv);
    if (argc > 2)
        return program(argv[1], argv[2]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    log_init(LOG_LVL_ERROR, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    dir_make(base);
    chmod(base, 0711);
    struct launch_paths paths = {0};
    if (readlink("/proc/self/exe", paths.bench, sizeof paths.bench - 1) < 0)
        abort();
    CHECK_INT(account_find(&account, NULL, base, &paths, &err), 0, "runs as %s", account.text);
    CHECK(account_find(&account, "no-such-account", base, &paths, &err) == (geteuid() ? 0 : -1),
          "an account that is not there");
    account_find(&account, NULL, base, &paths, &err);
    test_ends();
    test_lock();
    test_group();
    test_not_started();
    test_stop();
    test_daemon_killed();
    test_random_kills(40);
    test_restart_sweeps();
    test_links();
    dir_remove(base);
    return tap_done();
}

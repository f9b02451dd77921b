// SPDX-License-Identifier: Apache-2.0
// The process that owns a run's processes. It waits on four things: the daemon's socket, children
// that end, the clock, and what the processes print. The first reason to end the run is the one
// that is reported; then mpirun is asked (SIGTERM), and after a second everything below is killed.
// As a subreaper it gets every orphan, so a child's end is also the news that there may be others
// to kill.
#include "core/launch/supervisor_main.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "core/launch/supervisor.h"
#include "core/launch/supervisor_job.h"
#include "core/os/become.h"
#include "core/os/cgroup.h"
#include "core/os/processes.h"

enum {
    GRACE_MS = 1000,         // from SIGTERM to SIGKILL; mpirun needs it to end its ranks
    KILL_AGAIN_MS = 500,     // what a look at /proc has missed is killed by the next one
    STUCK_LOOK_MS = 2000,    // between looks whether mpirun has processes; one takes 50 us
    GROUP_MS = 2000,         // until the group of a run is empty, whose processes all were buried
    FILE_SIZE_MAX = 1 << 28, // of any file a rank writes: shared-memory segments have 4 MiB
    DESCRIPTORS_MAX = 16384, // mpirun has about five a rank
};

enum source { ON_CONTROL, ON_SIGNAL, ON_DEADLINE, ON_GRACE, ON_LOG, SOURCES };

struct supervisor {
    const char *dir, *group;
    int64_t deadline_s;
    struct become become;
    struct pollfd on[SOURCES];
    int log;         // file
    int64_t log_len; // bytes written
    pid_t mpirun;    // 0: has ended
    bool decided;    // report.how is set
    bool killing;    // SIGKILL has begun
    bool had_ranks;  // mpirun has had processes
    int without;     // looks in a row at which all of them had ended
    bool daemon_gone;
    struct supervisor_report report;
};

static void supervisor_main_decide(struct supervisor *s, enum supervisor_end how, int status)
{
    if (s->decided)
        return;
    s->decided = true;
    s->report.how = how;
    s->report.status = status;
}

static int supervisor_main_arm(int timer, int64_t ms)
{
    struct itimerspec when = {.it_value = {ms / 1000, ms % 1000 * 1000000}};
    return timerfd_settime(timer, 0, &when, NULL);
}

static void supervisor_main_kill_all(struct supervisor *s)
{
    s->report.killed += proc_kill_below(SIGKILL);
    run_group_kill(s->group, 0); // at once, also what is being forked
    s->killing = true;
}

static void end_run(struct supervisor *s, enum supervisor_end how)
{
    if (s->decided)
        return;
    supervisor_main_decide(s, how, 0);
    if (!s->mpirun || kill(s->mpirun, SIGTERM) < 0 ||
        supervisor_main_arm(s->on[ON_GRACE].fd, GRACE_MS) < 0)
        supervisor_main_kill_all(s);
}

static void supervisor_main_on_control(struct supervisor *s)
{
    char byte;
    ssize_t n = recv(s->on[ON_CONTROL].fd, &byte, 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        s->daemon_gone = true;
        s->on[ON_CONTROL].fd = -1;
    }
    end_run(s, SUP_STOPPED);
}

static void mpirun_ended(struct supervisor *s, int status)
{
    s->mpirun = 0;
    if (WIFSIGNALED(status))
        supervisor_main_decide(s, SUP_SIGNALED, WTERMSIG(status));
    else
        supervisor_main_decide(s, SUP_EXITED, WEXITSTATUS(status));
    supervisor_main_kill_all(s); // nothing outlives it
}

static void on_signal(struct supervisor *s)
{
    struct signalfd_siginfo info;
    if (read(s->on[ON_SIGNAL].fd, &info, sizeof info) != sizeof info)
        return;
    if (info.ssi_signo != SIGCHLD) {
        end_run(s, SUP_STOPPED);
        return;
    }
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == s->mpirun)
            mpirun_ended(s, status);
    if (s->killing)
        supervisor_main_kill_all(s); // what was forked while we looked
}

static void supervisor_main_on_deadline(struct supervisor *s)
{
    end_run(s, SUP_DEADLINE);
    s->on[ON_DEADLINE].fd = -1;
}

static void on_grace(struct supervisor *s)
{
    s->on[ON_GRACE].fd = -1;
    supervisor_main_kill_all(s);
}

// A flood is read and dropped: a full pipe would stop mpirun.
static void on_log(struct supervisor *s)
{
    static const char cut[] = "\n[the rest was cut]\n";
    char text[16384];
    ssize_t n = read(s->on[ON_LOG].fd, text, sizeof text);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        close(s->on[ON_LOG].fd);
        s->on[ON_LOG].fd = -1;
        return;
    }
    int64_t room = SUPERVISOR_LOG_MAX - (int64_t)sizeof cut - s->log_len;
    if (room <= 0)
        return;
    ssize_t ignored = write(s->log, text, (size_t)(n < room ? n : room));
    s->log_len += n;
    if (n >= room)
        ignored = write(s->log, cut, sizeof cut - 1);
    (void)ignored;
}

// Open MPI 4's mpirun can wait for itself for ever, when a rank ends while it connects.
static void look_for_ranks(struct supervisor *s)
{
    enum proc_children are = proc_children_of(s->mpirun);
    s->had_ranks |= are >= CHILDREN_ENDED;
    bool none = s->had_ranks && (are == CHILDREN_NONE || are == CHILDREN_ENDED);
    s->without = none ? s->without + 1 : 0;
    if (s->without > SUPERVISOR_STUCK_S * 1000 / STUCK_LOOK_MS)
        end_run(s, SUP_STUCK);
}

static int patience_ms(const struct supervisor *s)
{
    return s->killing ? KILL_AGAIN_MS : s->mpirun && !s->decided ? STUCK_LOOK_MS : -1;
}

static void nothing_came(struct supervisor *s)
{
    if (s->killing)
        supervisor_main_kill_all(s);
    else
        look_for_ranks(s);
}

static bool any_child(void)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void watch_until_empty(struct supervisor *s)
{
    static void (*const handlers[SOURCES])(struct supervisor * s) = {
        [ON_CONTROL] = supervisor_main_on_control,
        [ON_SIGNAL] = on_signal,
        [ON_DEADLINE] = supervisor_main_on_deadline,
        [ON_GRACE] = on_grace,
        [ON_LOG] = on_log,
    };
    while (any_child()) {
        int n = poll(s->on, SOURCES, patience_ms(s));
        if (n < 0 && errno != EINTR)
            return;
        if (n == 0)
            nothing_came(s);
        for (int i = 0; i < SOURCES; i++)
            if (s->on[i].fd >= 0 && s->on[i].revents)
                handlers[i](s);
    }
    for (int was = -2; s->on[ON_LOG].fd >= 0 && was != s->log_len;) {
        was = (int)s->log_len; // what is left in the pipe; no process writes any more
        on_log(s);
    }
}

static int limit(int what, rlim_t most)
{
    struct rlimit r;
    if (getrlimit(what, &r) < 0)
        return -1;
    if (r.rlim_max == RLIM_INFINITY || r.rlim_max > most)
        r.rlim_max = most;
    r.rlim_cur = r.rlim_max;
    return setrlimit(what, &r);
}

static void supervisor_main_write_text(const char *path, const char *text)
{
    CLEANUP_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, text, strlen(text)) < 0)
        return;
}

// Why the child did not become mpirun.
struct failure {
    enum supervisor_end how;
    int error;
};

// In the child. What it returns from is a failure, with errno.
static enum supervisor_end become_mpirun(const struct supervisor *s, char **argv, char **envp,
                                         int out, pid_t me)
{
    const char *step;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    // When memory runs out, ranks go first, not a production job.
    supervisor_main_write_text("/proc/self/oom_score_adj", "1000");
    limit(RLIMIT_FSIZE, FILE_SIZE_MAX);
    if (*s->group && !run_group_enter(s->group))
        return SUP_NOT_STARTED;
    if (become(&s->become, &step) < 0)
        return s->become.isolated ? SUP_NOT_ISOLATED : SUP_NOT_STARTED;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return SUP_NOT_STARTED;
    umask(077);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || chdir(s->dir) < 0) // after the change of account
        return SUP_NOT_STARTED;
    if (getppid() != me)
        _exit(1);
    if (dup2(out, 1) >= 0 && dup2(out, 2) >= 0)
        execve(argv[0], argv, envp);
    return SUP_NOT_STARTED;
}

static int supervisor_main_start(struct supervisor *s, char **argv, char **envp, int out)
{
    int p[2];
    struct failure failure;
    pid_t me = getpid();
    if (pipe2(p, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        failure.how = become_mpirun(s, argv, envp, out, me);
        failure.error = errno;
        ssize_t ignored = write(p[1], &failure, sizeof failure);
        (void)ignored;
        _exit(127);
    }
    close(p[1]);
    CLEANUP_FD int in = p[0];
    if (pid < 0)
        return -1;
    s->mpirun = pid;
    if (read(in, &failure, sizeof failure) == sizeof failure) {
        supervisor_main_decide(s, failure.how, failure.error);
        s->killing = true;
    }
    return 0;
}

// Splits "a\0b\0\0" at *text into a list and moves on behind it.
static char **supervisor_main_read_list(char **text, const char *end)
{
    size_t n = 0;
    for (char *p = *text; p < end && *p; p += strlen(p) + 1)
        n++;
    char **list = calloc(n + 1, sizeof *list);
    for (size_t i = 0; list && i < n; i++) {
        list[i] = *text;
        *text += strlen(*text) + 1;
    }
    ++*text;
    return list;
}

static int read_job(char ***argv, char ***envp)
{
    struct stat st;
    if (fstat(SUPERVISOR_JOB_FD, &st) < 0 || st.st_size < 2)
        return -1;
    char *text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, SUPERVISOR_JOB_FD, 0);
    if (text == MAP_FAILED || text[st.st_size - 1])
        return -1;
    const char *end = text + st.st_size;
    close(SUPERVISOR_JOB_FD);
    *argv = supervisor_main_read_list(&text, end);
    *envp = supervisor_main_read_list(&text, end);
    return *argv && *envp && **argv ? 0 : -1;
}

static int supervisor_main_open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int open_sources(struct supervisor *s, int *log_in)
{
    char path[600];
    int p[2];
    snprintf(path, sizeof path, "%s/log", s->dir);
    s->log = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->log < 0 || pipe2(p, O_CLOEXEC) < 0)
        return -1;
    fcntl(p[0], F_SETFL, O_NONBLOCK); // the reader's end only
    *log_in = p[1];
    int fds[SOURCES] = {[ON_CONTROL] = SUPERVISOR_CONTROL_FD,
                        [ON_SIGNAL] = supervisor_main_open_signals(),
                        [ON_DEADLINE] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC),
                        [ON_GRACE] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC),
                        [ON_LOG] = p[0]};
    for (int i = 0; i < SOURCES; i++) {
        if (fds[i] < 0)
            return -1;
        s->on[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    }
    return supervisor_main_arm(s->on[ON_DEADLINE].fd, s->deadline_s * 1000);
}

static int supervisor_main_prepare(struct supervisor *s, int *log_in)
{
    fcntl(SUPERVISOR_CONTROL_FD, F_SETFD, FD_CLOEXEC);
    fcntl(SUPERVISOR_JOB_FD, F_SETFD, FD_CLOEXEC);
    fcntl(SUPERVISOR_LOCK_FD, F_SETFD, FD_CLOEXEC); // if it is there
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NOFILE, DESCRIPTORS_MAX);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return -1;
    return open_sources(s, log_in);
}

static void send_report(struct supervisor *s)
{
    char line[128];
    int n = snprintf(line, sizeof line, SUPERVISOR_REPORT, (int)s->report.how, s->report.status,
                     s->report.killed);
    if (!s->daemon_gone && send(SUPERVISOR_CONTROL_FD, line, (size_t)n, MSG_NOSIGNAL) == n)
        while (recv(SUPERVISOR_CONTROL_FD, line, sizeof line, 0) > 0)
            continue; // a stop request that came too late
}

static bool supervisor_main_read_args(struct supervisor *s, int argc, char **argv)
{
    int64_t uid, gid;
    if (argc != 8 || *argv[2] != '/' || !str_to_i64(argv[3], &s->deadline_s) ||
        !str_to_i64(argv[4], &uid) || !str_to_i64(argv[5], &gid) || s->deadline_s < 1)
        return false;
    s->dir = argv[2];
    s->become = (struct become){(uid_t)uid, (gid_t)gid, *argv[6] == '1'};
    s->group = argv[7];
    return true;
}

int supervisor_main(int argc, char **argv)
{
    struct supervisor s = {.log = -1};
    CLEANUP_MEM char **words = NULL, **envp = NULL;
    int log_in = -1;
    struct stat st;
    if (!supervisor_main_read_args(&s, argc, argv) || fstat(SUPERVISOR_CONTROL_FD, &st) < 0 ||
        !S_ISSOCK(st.st_mode)) {
        dprintf(2, "numaprobed --supervise is for numaprobed itself\n");
        return 2;
    }
    if (supervisor_main_prepare(&s, &log_in) < 0 || read_job(&words, &envp) < 0 ||
        supervisor_main_start(&s, words, envp, log_in) < 0)
        supervisor_main_decide(&s, SUP_NOT_STARTED, errno);
    if (log_in >= 0)
        close(log_in);
    watch_until_empty(&s);
    run_group_kill(s.group, GROUP_MS);
    run_group_remove(s.group);
    send_report(&s);
    struct err err;
    if (tree_remove(s.dir, &err) < 0)
        log_error("supervisor.cleanup", &err);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// The daemon's side starts the process and hears one line from it; the process opens the database
// read-only at the lowest priority, does its work, and writes that line.
#include "core/store/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/os/child.h"
#include "core/store/sqlite.h"

static const char *const verbs[] = {
    [STORE_CHECK] = "check", [STORE_VERIFY] = "verify", [STORE_COPY] = "copy"};

// ---- the daemon's side

static void worker_forget(struct store_child *c)
{
    loop_unwatch(c->watch);
    close(c->pipe);
    waitpid(c->pid, NULL, WNOHANG); // else the runner reaps it when it is gone
    close(c->pidfd);
    c->watch = NULL;
    c->pid = 0;
}

void store_child_stop(struct store_child *c)
{
    if (!c->pid)
        return;
    // By file descriptor: once reaped, the number may be another process's.
    syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
    worker_forget(c);
}

static void read_how(const struct store_child *c, struct err *how)
{
    int code = 0, at = 0;
    if (sscanf(c->said, "%d %n", &code, &at) != 1 || code < 0 || code >= ERR_CODES || !at) {
        err_set(how, ERR_UNAVAILABLE, "", "the process that reads the database was killed");
        return;
    }
    *how = (struct err){.code = (enum err_code)code};
    snprintf(how->text, sizeof how->text, "%.*s", (int)strcspn(c->said + at, "\n"), c->said + at);
}

static void worker_on_pipe(void *ctx, uint32_t events)
{
    struct store_child *c = ctx;
    struct err how;
    (void)events;
    ssize_t n = read(c->pipe, c->said + c->n, sizeof c->said - 1 - c->n);
    if (n > 0) {
        c->n += (size_t)n;
        c->said[c->n] = '\0';
        if (c->n < sizeof c->said - 1)
            return;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    read_how(c, &how);
    store_child_stop(c);
    c->done(c->ctx, &how);
}

static int worker_spawn(pid_t *pid, enum store_work work, const char *database, const char *to,
                        int out)
{
    char program[] = "numaprobed", option[] = "--database", verb[8], from[600], into[600];
    char *argv[] = {program, option, verb, from, to ? into : NULL, NULL};
    snprintf(verb, sizeof verb, "%s", verbs[work]);
    snprintf(from, sizeof from, "%s", database);
    snprintf(into, sizeof into, "%s", to ? to : "");
    return child_exec(pid, argv, &(struct child_fd){out, STDOUT_FILENO}, 1, false);
}

int store_child_start(struct store_child *c, struct loop *l, enum store_work work,
                      const char *database, const char *to,
                      void (*done)(void *ctx, const struct err *how), void *ctx, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, "a pipe");
    CLEANUP_FD int ours = ends[0], theirs = ends[1];
    fcntl(ours, F_SETFL, O_NONBLOCK);
    struct store_child made = {.done = done, .ctx = ctx};
    errno = worker_spawn(&made.pid, work, database, to, theirs);
    if (errno)
        return err_sys(err, "starting a process to read the database");
    made.pidfd = (int)syscall(SYS_pidfd_open, made.pid, 0);
    *c = made;
    if (c->pidfd >= 0)
        c->watch = loop_watch_fd(l, ours, EPOLLIN, worker_on_pipe, c, err);
    else
        err_sys(err, "pidfd_open");
    if (!c->watch) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
        fd_cleanup(&c->pidfd);
        c->pid = 0;
        return -1;
    }
    c->pipe = steal_fd(&ours);
    return 0;
}

// ---- the process

// Neither the ranks of a run nor the daemon wait for this.
static void lower_own_priority(void)
{
    enum { IOPRIO_WHO_PROCESS = 1, IOPRIO_IDLE = 3 << 13 };
    setpriority(PRIO_PROCESS, 0, 19);
    syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
}

static void close_db(sqlite3 **db)
{
    sqlite3_close(*db);
}

static int worker_work(enum store_work what, const char *database, const char *to, struct err *err)
{
    CLEANUP(close_db) sqlite3 *db = NULL;
    if (sq_open(&db, database, SQLITE_OPEN_READONLY, err) < 0)
        return -1;
    // The daemon alone does checkpoints (docs/STORAGE.md), also when it is gone.
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return what == STORE_COPY ? sq_copy(db, to, err) : sq_check(db, what == STORE_VERIFY, err);
}

// -1: it is none.
static int work_of(int argc, char **argv)
{
    for (int i = 0; argc >= 4 && i < (int)COUNT_OF(verbs); i++)
        if (strcmp(argv[2], verbs[i]) == 0 && argc == (i == STORE_COPY ? 5 : 4))
            return i;
    return -1;
}

int store_child_main(int argc, char **argv)
{
    struct err err = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    umask(077);
    lower_own_priority();
    int what = work_of(argc, argv);
    if (what < 0)
        return 2;
    int rc = worker_work((enum store_work)what, argv[3], argv[4], &err);
    dprintf(STDOUT_FILENO, "%d %s\n", rc < 0 ? (int)err.code : ERR_NONE, rc < 0 ? err.text : "ok");
    return rc < 0;
}

// SPDX-License-Identifier: Apache-2.0
// The child is this program with --print-nodes. It gets the sources as options, since a child has
// no environment.
#include "fleet/collect/naming.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/os/child.h"

struct naming {
    struct loop *loop;
    const struct fleetd_config *c;
    naming_fn *named;
    void *ctx;
    struct loop_timer *timer;
    struct loop_watch *watch;
    int pipe; // -1: nothing is being read
    pid_t pid;
    struct buf text;
    bool again;            // requested while it was being read
    int believed, doubted; // nodes of the last list that was believed, of the last that was not
    char problem[200];
};

static int take_names(struct naming *n, struct nodeset *out, struct err *err)
{
    for (char *save = NULL, *line = strtok_r(n->text.data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        if (nodeset_add(out, line, err) < 0)
            return -1;
    nodeset_sort(out);
    return 0;
}

static void naming_failed(struct naming *n, const char *why)
{
    if (strcmp(n->problem, why) != 0)
        log_event(LOG_LVL_WARN, "sources", "text=\"%s\"", why);
    snprintf(n->problem, sizeof n->problem, "%s", why);
    loop_timer_set(n->timer, NAMING_AGAIN_MS);
}

static void use_names(struct naming *n)
{
    CLEANUP_NODESET struct nodeset names = {0};
    struct err err;
    char why[sizeof n->problem];
    if (!buf_ok(&n->text))
        naming_failed(n, "the sources name more nodes than there is memory or room for");
    else if (n->text.len && take_names(n, &names, &err) < 0)
        naming_failed(n, err.text);
    else if (2 * names.n < n->believed && names.n != n->doubted) {
        snprintf(why, sizeof why,
                 "the sources name %d nodes and named %d before; believed if they say so again",
                 names.n, n->believed);
        n->doubted = names.n;
        naming_failed(n, why);
    } else {
        n->believed = names.n;
        n->doubted = -1;
        n->problem[0] = '\0';
        loop_timer_set(n->timer, NAMING_EVERY_MS);
        n->named(n->ctx, &names);
    }
}

static void end_reading(struct naming *n, bool kill_it)
{
    int status = 0;
    loop_unwatch(n->watch);
    n->watch = NULL;
    fd_cleanup(&n->pipe);
    if (kill_it)
        kill(n->pid, SIGKILL);
    while (waitpid(n->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    n->pid = 0;
    if (!kill_it && status != 0)
        naming_failed(n, "the sources cannot be read; the log has the reason");
    else if (!kill_it)
        use_names(n);
    buf_free(&n->text);
    if (n->again)
        naming_again(n);
}

static void on_names(void *ctx, uint32_t events)
{
    struct naming *n = ctx;
    char bytes[16384];
    (void)events;
    ssize_t got = read(n->pipe, bytes, sizeof bytes);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0 && n->text.len + (size_t)got <= NAMING_BYTES_MAX)
        buf_add(&n->text, bytes, (size_t)got);
    else if (got > 0)
        buf_fail(&n->text);
    else
        end_reading(n, false);
}

static int start_reading(struct naming *n, struct err *err)
{
    const struct fleetd_config *c = n->c;
    const struct {
        const char *option, *value;
    } options[] = {{"state-dir", c->state_dir}, // without HOME there is no default
                   {"run-dir", c->run_dir},         {"nodes", c->nodes},
                   {"hostfile", c->hostfile},       {"from-slurm", c->from_slurm},
                   {"groups-file", c->groups_file}, {"group-command", c->group_command}};
    enum { OPTIONS = COUNT_OF(options) };
    static char texts[OPTIONS][sizeof c->nodes + 32];
    char program[] = "numaprobe-fleetd", print[] = "--print-nodes", none[] = "--config=/dev/null";
    char *argv[OPTIONS + 4] = {program, print, none};
    int argc = 3, pair[2];
    for (int i = 0; i < OPTIONS; i++) {
        snprintf(texts[i], sizeof texts[i], "--%s=%s", options[i].option, options[i].value);
        argv[argc++] = texts[i];
    }
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    CLEANUP_FD int ours = pair[0], theirs = pair[1];
    const struct child_fd fds[] = {{theirs, STDOUT_FILENO}};
    if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "fcntl");
    n->watch = loop_watch_fd(n->loop, ours, EPOLLIN, on_names, n, err);
    if (!n->watch)
        return -1;
    errno = child_exec(&n->pid, argv, fds, COUNT_OF(fds), false);
    if (errno) {
        err_sys(err, "starting a child that reads the sources");
        loop_unwatch(n->watch);
        n->watch = NULL;
        return -1;
    }
    n->pipe = steal_fd(&ours);
    return 0;
}

static void on_naming(void *ctx, uint32_t events)
{
    struct naming *n = ctx;
    struct err err;
    (void)events;
    n->again = n->pipe >= 0;
    if (!n->again && start_reading(n, &err) < 0)
        naming_failed(n, err.text);
}

struct naming *naming_new(struct loop *loop, const struct fleetd_config *c, naming_fn *named,
                          void *ctx, struct err *err)
{
    struct naming *n = calloc(1, sizeof *n);
    if (!n) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the sources");
        return NULL;
    }
    *n = (struct naming){.loop = loop, .c = c, .named = named, .ctx = ctx, .pipe = -1};
    n->doubted = -1;
    n->timer = loop_timer_new(loop, on_naming, n, err);
    if (!n->timer) {
        free(n);
        return NULL;
    }
    naming_again(n);
    return n;
}

void naming_free(struct naming *n)
{
    if (!n)
        return;
    if (n->pipe >= 0)
        end_reading(n, true);
    loop_timer_free(n->timer);
    free(n);
}

void naming_again(struct naming *n)
{
    loop_timer_set(n->timer, 0);
}

const char *naming_problem(const struct naming *n)
{
    return n->problem;
}

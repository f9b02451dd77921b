// SPDX-License-Identifier: Apache-2.0
// The end of a child is that of its process, not that of its output: whoever has taken over a child
// may close the pipe and stay.
#include "core/os/child_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/utf8.h"

enum {
    OUTPUT_PIECE = 16384, // of one read: a list of many nodes takes a few hundred
    PIPE_PIECES = 64,     // 1 MiB, all that a pipe holds: a child's own child may print without end
};

// Bytes that were read; 0: its output is closed; -1: there are none now.
static ssize_t child_output_read(struct child_output *c)
{
    char bytes[OUTPUT_PIECE];
    ssize_t got = read(c->pipe, bytes, sizeof bytes);
    if (got <= 0)
        return got;
    buf_add(&c->text, bytes, (size_t)got);
    if (buf_ok(&c->text) && c->use.more)
        c->use.more(c->use.ctx, &c->text);
    if (c->text.len > c->use.most)
        buf_fail(&c->text);
    return got;
}

// A status of waitpid(): its own, if it had ended before.
static int child_output_close(struct child_output *c)
{
    loop_unwatch(c->readable);
    loop_unwatch(c->end);
    loop_timer_free(c->timer);
    c->readable = c->end = NULL;
    c->timer = NULL;
    int status = child_end(&c->pid, CHILD_END_MS);
    for (int left = PIPE_PIECES; left > 0 && child_output_read(c) > 0; left--)
        continue;
    fd_cleanup(&c->pipe);
    fd_cleanup(&c->pidfd);
    return status;
}

static void on_child_readable(void *ctx, uint32_t events)
{
    struct child_output *c = ctx;
    (void)events;
    ssize_t got = child_output_read(c);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    loop_unwatch(c->readable);
    c->readable = NULL;
}

static void child_output_ended(struct child_output *c, bool late)
{
    const struct child_output_use use = c->use;
    int status = child_output_close(c);
    CLEANUP_BUF struct buf text = c->text;
    const struct child_output_end end = {status, late, &text};
    c->text = BUF_INIT;
    use.ended(use.ctx, &end); // `c` may be gone after this
}

static void on_child_end(void *ctx, uint32_t events)
{
    (void)events;
    child_output_ended(ctx, false);
}

static void on_child_late(void *ctx, uint32_t events)
{
    (void)events;
    child_output_ended(ctx, true);
}

static int child_output_watch(struct child_output *c, struct loop *l, struct err *err)
{
    c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    if (c->pidfd < 0)
        return err_sys(err, "pidfd_open");
    c->readable = loop_watch_fd(l, c->pipe, EPOLLIN, on_child_readable, c, err);
    c->end = c->readable ? loop_watch_fd(l, c->pidfd, EPOLLIN, on_child_end, c, err) : NULL;
    c->timer = c->end ? loop_timer_new(l, on_child_late, c, err) : NULL;
    if (!c->timer)
        return -1;
    loop_timer_set(c->timer, c->use.limit_ms);
    return 0;
}

int child_output_start(struct child_output *c, struct loop *l, const struct child_output_use *use,
                       char *const argv[], int in, struct err *err)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    CLEANUP_FD int ours = pair[0], theirs = pair[1];
    const struct child_fd fds[] = {{in, STDIN_FILENO}, {theirs, STDOUT_FILENO}};
    if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "fcntl");
    *c = (struct child_output){.use = *use, .pipe = -1, .pidfd = -1};
    errno = child_exec_with(&c->pid, argv, fds, COUNT_OF(fds), use->session, use->variables);
    if (errno) {
        c->pid = 0;
        return err_sys(err, "starting a process");
    }
    c->pipe = steal_fd(&ours);
    if (child_output_watch(c, l, err) == 0)
        return 0;
    child_output_stop(c);
    return -1;
}

void child_output_stop(struct child_output *c)
{
    if (!c->pid)
        return;
    child_output_close(c);
    buf_free(&c->text);
}

void child_output_leave(struct child_output *c)
{
    if (!c->pid)
        return;
    c->pid = 0; // so that it is not ended
    child_output_close(c);
    buf_free(&c->text);
}

void child_output_line(const struct buf *text, char *out, size_t room)
{
    snprintf(out, room, "%.*s", (int)strcspn(buf_text(text), "\n"), buf_text(text));
    utf8_plain(out);
}

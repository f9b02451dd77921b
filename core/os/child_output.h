// SPDX-License-Identifier: Apache-2.0
// A child of child_exec() whose stdout is read in the loop. Nothing here waits for it: a child that
// closes its stdout and stays does not hold up the loop.
#pragma once
#include "base/buf.h"
#include "core/os/child.h"
#include "core/os/loop.h"

struct child_output_end {
    int status;       // of waitpid()
    bool late;        // it was killed because of the limit
    struct buf *text; // what it printed and use.more() left; freed after use.ended(), unless taken
};

struct child_output_use {
    size_t most;                  // bytes that may stay in `text`; with more its buffer fails
    int64_t limit_ms;             // then the child is killed; -1: it may take as long as it wants
    bool session;                 // as of child_exec()
    const char *const *variables; // as of child_exec_with()
    // There is more in `text`. What it has used, it drops. NULL: all of the text is kept.
    void (*more)(void *ctx, struct buf *text);
    // May start the next one, or free the struct child_output.
    void (*ended)(void *ctx, const struct child_output_end *end);
    void *ctx;
};

// Zeroed: none runs.
struct child_output {
    pid_t pid; // 0: none runs
    struct child_output_use use;
    struct buf text;
    int pipe, pidfd;
    struct loop_watch *readable, *end;
    struct loop_timer *timer;
};

// in: its stdin, a file descriptor that stays the caller's; -1: it has none.
int child_output_start(struct child_output *c, struct loop *l, const struct child_output_use *use,
                       char *const argv[], int in, struct err *err);
// Kills it. What it had printed before still reaches use.more(); use.ended() is not called.
void child_output_stop(struct child_output *c);
// Lets it run on, and hears no more of it: for a caller that ends too.
void child_output_leave(struct child_output *c);
// The first line of `text`, as far as there is room, without control characters.
void child_output_line(const struct buf *text, char *out, size_t room);

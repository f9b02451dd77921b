// SPDX-License-Identifier: Apache-2.0
// Connections as descriptors: who is at the other end, and until when the present step may take.
//
// The HTTP library knows only how long a connection was silent; a client that sends a byte a second
// stays for ever. So each connection has an absolute deadline for the step that it is in, and is
// cut when that is over. One timer serves all of them; with no connection there is none.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "core/loop.h"
#include "model/token.h"

// 10 s for the headers, 30 s for the body and 20 s for the answer: no exchange that neither waits
// for a run nor moves more than 5 MiB takes longer than a minute.
enum {
    LINE_HEAD_MS = 10000,   // from the first byte that could come; also of a TLS handshake
    LINE_KEPT_MS = 30000,   // of a kept connection: until the next request's headers are whole
    LINE_BODY_MS = 30000,   // 64 KiB in 30 s is 2 KiB/s
    LINE_ANSWER_MS = 20000, // 64 KiB in 20 s is 3 KiB/s
    LINE_RATE = 256,        // bytes a ms of what is larger: 24 MiB may take 94 s more
};

struct line {
    LIST_ENTRY(line) entry; // of all->list
    struct lines *all;
    const void *listener; // lines of one listener are counted together
    int fd;               // borrowed
    bool local;           // a unix socket, with uid and pid
    bool cut;
    uid_t uid;
    enum scope scope;    // of what comes without a token
    int64_t deadline_ms; // on the monotonic clock; INT64_MAX: none
};

struct lines {
    struct loop *loop;
    struct loop_timer *timer;
    LIST_HEAD(, line) list;
    int64_t armed_ms;
    int per_account; // of one listener
    int n, most;     // there are; there were since somebody set it back
};

int lines_init(struct lines *all, struct loop *loop, int per_account, struct err *err);
void lines_fini(struct lines *all);

// A connection that was accepted: it has LINE_HEAD_MS. Cut at once if its account has too many.
// NULL: no memory.
struct line *line_new(struct lines *all, const void *listener, int fd, bool local);
void line_free(struct line *l); // NULL is fine
void line_cut(struct line *l);  // the library sees the end and lets go of it
// The next step may take so long; < 0: for ever. NULL is fine.
void line_allow(struct line *l, int64_t ms);
// Milliseconds for so many bytes in a step that has at least `least`.
int64_t line_time(int64_t least, uint64_t bytes);

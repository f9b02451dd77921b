// SPDX-License-Identifier: Apache-2.0
// Answers that a worker has made (http/server/worker.h): the head of a reply and a memory file with
// the body, which the library sends from there, so that it never passes through our memory. Those
// made last are kept by what they answer: some of them never change.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "core/os/loop.h"

enum {
    ANSWERS_MAX = 96 << 20, // of all together that are sent or kept: four of the largest
    ANSWERS_KEPT = 32 << 20,
    ANSWERS_KEPT_MAX = 64,   // a file descriptor each
    ANSWERS_KEPT_MS = 60000, // since one was made: then the node has its memory back
    ANSWERS_SENT_MAX =
        256 - 64, // of those that are large, a file descriptor each (http/server/listeners.c)
};

struct worker_answer {
    struct err err; // code ERR_NONE: there is a body
    int status;
    bool store, standalone;
    bool coded, gzip; // it may be compressed for clients that prefer it so; and it is
    int retry_after_s;
    size_t bytes;
    char type[96], etag[24], location[48], next[320];
};

struct answers;
struct ready_answer {
    TAILQ_ENTRY(ready_answer) entry; // of those that are kept
    struct answers *all;
    int refs;
    unsigned counted; // by the last that counted some of them
    int fd;           // of a sealed memory file
    struct worker_answer head;
    char *key; // owned; NULL: it is not kept
    size_t key_bytes;
};

struct answers {
    TAILQ_HEAD(kept_answers, ready_answer) kept; // used last first
    size_t kept_bytes, bytes;                    // bytes: of all that there are
    int n_kept;
    unsigned counts;
    struct loop_timer *forget;
};

int answers_init(struct answers *all, struct loop *l, struct err *err);
void answers_fini(struct answers *all); // forgets those that are kept
// A reference of the caller's own; NULL: there is none.
struct ready_answer *answers_find(struct answers *all, const void *key, size_t n);
// A new one, with one reference; takes the file descriptor, also on failure. NULL: no memory.
struct ready_answer *answers_add(struct answers *all, const struct worker_answer *head, int fd);
// Keeps it, if it is not too large.
void answers_keep(struct answers *all, struct ready_answer *a, const void *key, size_t n);
// Whether another one of so many bytes may be made now. Forgets kept ones for it.
bool answers_have_room(struct answers *all, size_t bytes);
struct ready_answer *answer_ref(struct ready_answer *a);
void answer_unref(struct ready_answer *a); // NULL is fine

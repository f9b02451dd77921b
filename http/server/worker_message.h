// SPDX-License-Identifier: Apache-2.0
// What the daemon and its worker (worker.h) say to each other: one packet each way, and
// with the answer the body in a sealed memory file. Both are the same program, so structures go as
// they are.
#pragma once
#include "http/messages/ready_answer.h"
#include "http/messages/request.h"

enum {
    WORKER_TEXT_MAX =
        65536, // a head of a request has 16 KiB at most, and decoding makes it smaller
    WORKER_CONTROL_FD = 3,
};

struct worker_question {
    int kind;        // number of a struct job_kind; 0: make the reply
    int64_t version; // of the data
    enum scope granted;
    int hint;
    char id[20];
    int n_query, n_headers;
    size_t text_bytes;
};

// The question as one packet: the structure, then method, path, query and the headers that matter
// to an answer, each with its NUL. *text: where they begin, which name what is asked.
int worker_question_write(const struct request *q, int kind, int64_t version, struct buf *out,
                          size_t *text, struct err *err);
// The request points into `packet`, which must live as long.
int worker_question_read(const char *packet, size_t n, struct worker_question *head,
                         struct request *q, struct err *err);

// A packet with a file descriptor (-1: none). 1: sent or received, 0: the other side has ended, -1.
int worker_send(int socket, const void *data, size_t n, int fd, struct err *err);
int worker_receive(int socket, void *data, size_t room, size_t *n, int *fd, struct err *err);
// A sealed memory file with these bytes; the caller closes.
int worker_file(const void *data, size_t n, struct err *err);

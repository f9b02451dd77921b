// SPDX-License-Identifier: Apache-2.0
// Of a request a question has only what its answer depends on: two clients that ask the same send
// the same text.
#include "http/server/worker_message.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "http/messages/service.h"

// What else a client says of itself changes no answer.
static const char *const headers_sent[] = {"Accept", "Content-Type"};
static const char coding_header[] = "Accept-Encoding";

static void worker_message_add_text(struct buf *out, const char *text)
{
    buf_add(out, text, strlen(text) + 1);
}

// How many were added. Codings are said in one way, in however many a client can say them.
static int worker_message_add_headers(struct buf *out, const struct request *q)
{
    int n = 0;
    for (size_t i = 0; i < COUNT_OF(headers_sent); i++) {
        if (!request_header(q, headers_sent[i]))
            continue;
        worker_message_add_text(out, headers_sent[i]);
        request_header_list(q, headers_sent[i], out);
        buf_char(out, '\0');
        n++;
    }
    if (!q->service->gzip || !request_prefers_gzip(q))
        return n;
    worker_message_add_text(out, coding_header);
    worker_message_add_text(out, "gzip");
    return n + 1;
}

int worker_question_write(const struct request *q, int kind, int64_t version, struct buf *out,
                          size_t *text, struct err *err)
{
    struct worker_question head = {.kind = kind,
                                   .version = version,
                                   .granted = q->granted,
                                   .hint = q->hint,
                                   .n_query = q->n_query};
    memcpy(head.id, q->id, sizeof head.id);
    buf_add(out, &head, sizeof head);
    worker_message_add_text(out, q->method);
    worker_message_add_text(out, q->path);
    for (int i = 0; i < q->n_query; i++) {
        worker_message_add_text(out, q->query[i].name);
        worker_message_add_text(out, q->query[i].value);
    }
    head.n_headers = worker_message_add_headers(out, q);
    if (!buf_ok(out))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the request");
    head.text_bytes = out->len - sizeof head;
    if (head.text_bytes > WORKER_TEXT_MAX)
        return err_set(err, ERR_TOO_LARGE, "", "the request is too long");
    memcpy(out->data, &head, sizeof head);
    *text = sizeof head;
    return 0;
}

// NULL: there is no more text.
static const char *next_text(const char **at, const char *end)
{
    const char *text = *at, *nul = text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;
    *at = nul ? nul + 1 : end;
    return nul ? text : NULL;
}

static bool read_pairs(const char **at, const char *end, int n, struct http_pair *out)
{
    for (int i = 0; i < n; i++) {
        out[i].name = next_text(at, end);
        out[i].value = next_text(at, end);
        if (!out[i].value)
            return false;
    }
    return true;
}

int worker_question_read(const char *packet, size_t n, struct worker_question *head,
                         struct request *q, struct err *err)
{
    const char *at = packet + sizeof *head, *end = packet + n;
    if (n < sizeof *head)
        return err_set(err, ERR_INTERNAL, "", "the question is too short");
    memcpy(head, packet, sizeof *head);
    if (head->n_query < 0 || head->n_query > HTTP_QUERY_MAX || head->n_headers < 0 ||
        head->n_headers > HTTP_HEADERS_MAX)
        return err_set(err, ERR_INTERNAL, "", "the question is invalid");
    q->method = next_text(&at, end);
    q->path = next_text(&at, end);
    q->n_query = head->n_query;
    q->n_headers = head->n_headers;
    q->granted = head->granted;
    q->hint = head->hint;
    memcpy(q->id, head->id, sizeof q->id);
    if (!q->path || !read_pairs(&at, end, q->n_query, q->query) ||
        !read_pairs(&at, end, q->n_headers, q->headers))
        return err_set(err, ERR_INTERNAL, "", "the question is cut short");
    return 0;
}

int worker_send(int socket, const void *data, size_t n, int fd, struct err *err)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = n};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = control.room;
        m.msg_controllen = sizeof control.room;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    if (sendmsg(socket, &m, MSG_NOSIGNAL) == (ssize_t)n)
        return 1;
    if (errno == EPIPE || errno == ECONNRESET)
        return 0;
    return err_sys(err, "sending to the other process");
}

int worker_receive(int socket, void *data, size_t room, size_t *n, int *fd, struct err *err)
{
    struct iovec part = {.iov_base = data, .iov_len = room};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    ssize_t got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    if (got == 0 || (got < 0 && errno == ECONNRESET))
        return 0;
    if (got < 0)
        return err_sys(err, "hearing from the other process");
    *n = (size_t)got;
    *fd = -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(c), sizeof *fd);
    return 1;
}

static bool worker_message_write_all(int fd, const char *data, size_t n)
{
    while (n) {
        ssize_t done = write(fd, data, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        data += done;
        n -= (size_t)done;
    }
    return true;
}

int worker_file(const void *data, size_t n, struct err *err)
{
    CLEANUP_FD int fd = memfd_create("numaprobe-answer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || !worker_message_write_all(fd, data, n))
        return err_sys(err, "a memory file of %zu bytes", n);
    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    return steal_fd(&fd);
}

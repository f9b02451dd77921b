// SPDX-License-Identifier: Apache-2.0
// One process accepts, and one more serves each connection with blocking calls: what a server does
// wrong stands in one short function each.
#include "tests/unit/fetch/hostile.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { BODY_MAX = 1 << 20, HEAD_MAX = 4096, PATIENT_S = 60, IMPATIENT_S = 3 };

const struct fetch_limits hostile_limits = {.body_max = BODY_MAX,
                                            .head_max = HEAD_MAX,
                                            .connect_ms = PATIENT_S * 1000,
                                            .total_ms = 2 * PATIENT_S * 1000,
                                            .least_rate = 1024,
                                            .slow_s = PATIENT_S};
const struct fetch_limits hostile_impatient = {.body_max = BODY_MAX,
                                               .head_max = HEAD_MAX,
                                               .connect_ms = PATIENT_S * 1000,
                                               .total_ms = 2 * PATIENT_S * 1000,
                                               .least_rate = 1024,
                                               .slow_s = IMPATIENT_S};

enum { DRIP_MS = 100, BLOCK = 16384 };

static bool put(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t w = send(fd, bytes, n, MSG_NOSIGNAL);
        if (w <= 0)
            return false;
        bytes += w;
        n -= (size_t)w;
    }
    return true;
}

static bool put_text(int fd, const char *text)
{
    return put(fd, text, strlen(text));
}

static void stay(int fd) // until the client closes
{
    char byte;
    while (recv(fd, &byte, 1, 0) > 0)
        ;
}

static void ok(int fd, const char *request)
{
    (void)request;
    put_text(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n"
                 "{\"ok\":true}");
}

static void echo(int fd, const char *request)
{
    char head[200];
    snprintf(head, sizeof head, "HTTP/1.1 201 Created\r\nContent-Length: %zu\r\n\r\n",
             strlen(request));
    put_text(fd, head);
    put_text(fd, request);
}

static void busy(int fd, const char *request)
{
    (void)request;
    put_text(fd, "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nDate: Tue, 10 Nov 2099 08:00:00 GMT\r\n"
                 "Content-Type: application/problem+json\r\nContent-Length: 4\r\n\r\nbusy");
}

static void redirect(int fd, const char *request)
{
    (void)request;
    put_text(fd, "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 4\r\n\r\nmove");
}

static void garbage(int fd, const char *request)
{
    static const char bytes[] = "\0\1\2SSH-2.0-OpenSSH\r\n\xff\xfe\r\n\r\n";
    (void)request;
    put(fd, bytes, sizeof bytes);
}

static void endless(int fd, const char *request)
{
    char block[BLOCK];
    (void)request;
    memset(block, 'x', sizeof block);
    for (bool more = put_text(fd, "HTTP/1.1 200 OK\r\n\r\n"); more;)
        more = put(fd, block, sizeof block);
}

static void endless_head(int fd, const char *request)
{
    char line[1024];
    (void)request;
    snprintf(line, sizeof line, "X-Filler: %01000d\r\n", 0);
    for (bool more = put_text(fd, "HTTP/1.1 200 OK\r\n"); more;)
        more = put_text(fd, line);
}

static void long_line(int fd, const char *request)
{
    char block[BLOCK];
    (void)request;
    memset(block, 'x', sizeof block);
    for (bool more = put_text(fd, "HTTP/1.1 200 OK\r\nX-Filler: "); more;)
        more = put(fd, block, sizeof block);
}

static void declared_large(int fd, const char *request)
{
    (void)request;
    put_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nx");
    stay(fd);
}

static void drip(int fd, const char *request)
{
    (void)request;
    for (bool more = put_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"); more;) {
        struct pollfd gone = {fd, POLLIN, 0};
        more = poll(&gone, 1, DRIP_MS) == 0 && put(fd, "x", 1);
    }
}

static void cut(int fd, const char *request)
{
    (void)request;
    put_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"half\":");
}

static void cut_head(int fd, const char *request)
{
    (void)request;
    put_text(fd, "HTTP/1.1 200 OK\r\nContent-Le");
}

static void cut_chunk(int fd, const char *request)
{
    (void)request;
    put_text(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nff\r\nwor");
}

static void bad_chunk(int fd, const char *request)
{
    (void)request;
    put_text(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n");
}

static void short_length(int fd, const char *request)
{
    (void)request;
    put_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{\"more\":true}");
}

static void bad_length(int fd, const char *request)
{
    (void)request;
    put_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello");
}

static void stopped(int fd, const char *request)
{
    (void)request;
    put_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf");
    stay(fd);
}

static void silent(int fd, const char *request)
{
    (void)request;
    stay(fd);
}

static void nothing(int fd, const char *request)
{
    (void)fd, (void)request;
}

static const struct {
    const char *path;
    void (*serve)(int fd, const char *request);
} table[] = {
    {"/ok", ok},
    {"/echo", echo},
    {"/busy", busy},
    {"/redirect", redirect},
    {"/garbage", garbage},
    {"/endless", endless},
    {"/endless-head", endless_head},
    {"/long-line", long_line},
    {"/declared-large", declared_large},
    {"/drip", drip},
    {"/cut", cut},
    {"/cut-head", cut_head},
    {"/cut-chunk", cut_chunk},
    {"/bad-chunk", bad_chunk},
    {"/short-length", short_length},
    {"/bad-length", bad_length},
    {"/stopped", stopped},
    {"/silent", silent},
    {"/nothing", nothing},
};

// A request with its body; false: the client has gone.
static bool read_request(int fd, char *request, size_t room)
{
    size_t n = 0, want = 0;
    while (!want || n < want) {
        ssize_t r = recv(fd, request + n, room - 1 - n, 0);
        if (r <= 0)
            return false;
        n += (size_t)r;
        request[n] = '\0';
        const char *end = strstr(request, "\r\n\r\n");
        const char *length = strcasestr(request, "\r\nContent-Length: ");
        if (end)
            want = (size_t)(end - request) + 4 + (length ? strtoul(length + 18, NULL, 10) : 0);
    }
    return true;
}

static void serve(int fd)
{
    char request[4096], path[64];
    while (read_request(fd, request, sizeof request)) {
        if (sscanf(request, "%*s %63s", path) != 1)
            return;
        for (size_t k = 0; k < COUNT_OF(table); k++)
            if (strcmp(table[k].path, path) == 0)
                table[k].serve(fd, request);
        if (strcmp(path, "/ok") != 0 && strcmp(path, "/echo") != 0)
            return;
    }
}

static void accept_one(const int *listeners, int n, int i)
{
    int fd = accept(listeners[i], NULL, NULL);
    if (fd >= 0 && fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int k = 0; k < n; k++)
            close(listeners[k]);
        serve(fd);
        _exit(0);
    }
    close(fd);
}

static void hostile_main(int tcp, int unix_socket)
{
    int listeners[] = {tcp, unix_socket};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        struct pollfd ready[] = {{tcp, POLLIN, 0}, {unix_socket, POLLIN, 0}};
        if (poll(ready, COUNT_OF(ready), -1) <= 0)
            _exit(1);
        for (int i = 0; i < (int)COUNT_OF(ready); i++)
            if (ready[i].revents)
                accept_one(listeners, COUNT_OF(listeners), i);
    }
}

void hostile_start(struct hostile *h)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    socklen_t room = sizeof in;
    *h = (struct hostile){.dir = "/tmp/np-fetch-XXXXXX"};
    if (!mkdtemp(h->dir))
        abort();
    snprintf(h->socket, sizeof h->socket, "%s/socket", h->dir);
    memcpy(un.sun_path, h->socket, sizeof h->socket);
    int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(tcp, (struct sockaddr *)&in, sizeof in) < 0 || listen(tcp, 512) < 0 ||
        getsockname(tcp, (struct sockaddr *)&in, &room) < 0 ||
        bind(local, (struct sockaddr *)&un, sizeof un) < 0 || listen(local, 16) < 0)
        abort();
    h->port = ntohs(in.sin_port);
    fflush(stdout);
    h->pid = fork();
    if (h->pid == 0)
        hostile_main(tcp, local);
    close(tcp);
    close(local);
}

void hostile_stop(struct hostile *h)
{
    kill(h->pid, SIGKILL);
    waitpid(h->pid, NULL, 0);
    unlink(h->socket);
    rmdir(h->dir);
}

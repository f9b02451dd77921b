// SPDX-License-Identifier: Apache-2.0
// Many requests at once: each ends once with its own result, never more are in flight than allowed,
// bad ones do not delay good ones, and the queue can be added to and stopped.
#include "tests/unit/tap.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fetch/fetch.h"
#include "tests/unit/fetch/hostile.h"

enum { IN_FLIGHT = 16, REQUESTS = 400 };

static struct hostile server;

// Every fourth request fails, each in another way.
static const struct {
    const char *path;
    enum fetch_error error;
} kinds[] = {{"/ok", FETCH_OK},   {"/ok", FETCH_OK},
             {"/ok", FETCH_OK},   {"/garbage", FETCH_NOT_HTTP},
             {"/echo", FETCH_OK}, {"/ok", FETCH_OK},
             {"/ok", FETCH_OK},   {"/cut", FETCH_BROKEN},
             {"/ok", FETCH_OK},   {"/ok", FETCH_OK},
             {"/ok", FETCH_OK},   {"/nothing", FETCH_BROKEN},
             {"/ok", FETCH_OK},   {"/ok", FETCH_OK},
             {"/ok", FETCH_OK},   {"/long-line", FETCH_HEAD_TOO_LARGE}};

struct asked {
    struct fetch *f;
    enum fetch_error want;
    int *ended, *wrong, *again;
    int times;
};

static void set_url(char url[static 100], const char *path)
{
    snprintf(url, 100, "http://127.0.0.1:%d%s", server.port, path);
}

static void one_ended(void *ctx, struct fetch_response *r)
{
    struct asked *a = ctx;
    a->times++;
    (*a->ended)++;
    *a->wrong += r->error != a->want || (!r->error && !r->body.len);
}

static struct fetch *begin(int in_flight)
{
    struct err err = {0};
    struct fetch *f = fetch_new(in_flight, &hostile_limits, &err);
    CHECK(f != NULL, "%d at once %s", in_flight, err.text);
    if (!f)
        exit(1);
    return f;
}

static void each_ends_once(int in_flight)
{
    static struct asked asked[REQUESTS];
    struct fetch *f = begin(in_flight);
    int ended = 0, wrong = 0, refused = 0, twice = 0;
    char url[100];
    for (int i = 0; i < REQUESTS; i++) {
        asked[i] = (struct asked){f, kinds[i % COUNT_OF(kinds)].error, &ended, &wrong, NULL, 0};
        set_url(url, kinds[i % COUNT_OF(kinds)].path);
        refused += fetch_start(f, &(struct fetch_request){.url = url}, one_ended, &asked[i], NULL);
        memset(url, 'x', sizeof url - 1); // it was copied
    }
    CHECK(refused == 0 && ended == 0, "%d are queued, none has begun", REQUESTS);
    fetch_run(f, NULL);
    for (int i = 0; i < REQUESTS; i++)
        twice += asked[i].times != 1;
    CHECK_INT(ended, REQUESTS, "all have ended");
    CHECK_INT(twice, 0, "each of them once");
    CHECK_INT(wrong, 0, "each with its own result");
    CHECK_INT(fetch_turn(f), 0, "nothing is left");
    fetch_free(f);
}

static void ask_again(void *ctx, struct fetch_response *r)
{
    struct asked *a = ctx;
    char url[100];
    (*a->ended)++;
    *a->wrong += r->error != FETCH_OK;
    set_url(url, "/echo");
    if (--*a->again > 0)
        *a->wrong += fetch_start(a->f, &(struct fetch_request){.url = url, .more = true}, ask_again,
                                 a, NULL) < 0;
}

// The user's own loop: only the descriptor is watched.
static void on_one_descriptor(void)
{
    struct fetch *f = begin(1);
    int ended = 0, wrong = 0, again = 20;
    struct asked a = {f, FETCH_OK, &ended, &wrong, &again, 0};
    char url[100];
    set_url(url, "/echo");
    struct pollfd ready = {fetch_fd(f), POLLIN, 0};
    CHECK_INT(poll(&ready, 1, 0), 0, "nothing to do yet");
    fetch_start(f, &(struct fetch_request){.url = url, .more = true}, ask_again, &a, NULL);
    CHECK_INT(poll(&ready, 1, -1), 1, "a request is something to do");
    while (fetch_turn(f) > 0)
        poll(&ready, 1, -1);
    CHECK_INT(ended, 20, "pages of one host, one after the other, each begun by the one before");
    CHECK_INT(wrong, 0, "all of them");
    fetch_free(f);
}

static void bad_addresses(void)
{
    struct fetch *f = begin(4);
    struct err err = {0};
    int ended = 0, wrong = 0;
    struct asked refused = {f, FETCH_REFUSED, &ended, &wrong, NULL, 0};
    struct asked nameless = {f, FETCH_NO_NAME, &ended, &wrong, NULL, 0};
    CHECK(fetch_start(f, &(struct fetch_request){.url = "file:///etc/passwd"}, one_ended, &refused,
                      &err) < 0 &&
              err.code == ERR_INVALID,
          "a file is no URL of ours");
    for (int i = 0; i < 20; i++) {
        fetch_start(f,
                    &(struct fetch_request){.url = "http://localhost/", .socket = "/nonexistent"},
                    one_ended, &refused, NULL);
        fetch_start(f, &(struct fetch_request){.url = "http://node.invalid/"}, one_ended, &nameless,
                    NULL);
    }
    fetch_run(f, NULL);
    CHECK(ended == 40 && wrong == 0, "sockets that are not there, names without an address");
    fetch_free(f);
}

// Good hosts behind more silent ones than may be in flight.
static void silent_ones_end(void)
{
    struct fetch *f = begin(4);
    int ended = 0, wrong = 0;
    struct asked good = {f, FETCH_OK, &ended, &wrong, NULL, 0};
    struct asked silent = {f, FETCH_SILENT, &ended, &wrong, NULL, 0};
    struct asked slow = {f, FETCH_SLOW, &ended, &wrong, NULL, 0};
    char url[100];
    for (int i = 0; i < 24; i++) {
        set_url(url, i % 4 == 0 ? "/silent" : i % 4 == 1 ? "/drip" : "/ok");
        const struct fetch_limits *l = i % 4 > 1 ? &hostile_limits : &hostile_impatient;
        fetch_start(f, &(struct fetch_request){.url = url, .limits = l}, one_ended,
                    i % 4 == 0   ? &silent
                    : i % 4 == 1 ? &slow
                                 : &good,
                    NULL);
    }
    fetch_run(f, NULL);
    CHECK(ended == 24 && wrong == 0, "silent and dripping hosts end, the others respond");
    fetch_free(f);
}

static void start_more(void *ctx, struct fetch_response *r)
{
    struct asked *a = ctx;
    char url[100];
    one_ended(ctx, r);
    set_url(url, "/ok");
    *a->wrong += fetch_start(a->f, &(struct fetch_request){.url = url}, start_more, a, NULL) == 0;
}

static void stop(void)
{
    static const volatile int interrupted = 1;
    struct fetch *f = begin(4);
    int ended = 0, wrong = 0;
    struct asked a = {f, FETCH_INTERRUPTED, &ended, &wrong, NULL, 0};
    char url[100];
    set_url(url, "/silent");
    for (int i = 0; i < 10; i++)
        fetch_start(f, &(struct fetch_request){.url = url}, start_more, &a, NULL);
    fetch_run(f, &interrupted);
    CHECK_INT(ended, 10, "an interruption ends those in flight and those queued");
    CHECK_INT(wrong, 0, "as interrupted, and none begins meanwhile");
    ended = 0;
    for (int i = 0; i < 10; i++)
        fetch_start(f, &(struct fetch_request){.url = url}, one_ended, &a, NULL);
    CHECK_INT(fetch_turn(f), 10, "it can be used again");
    fetch_free(f);
    CHECK_INT(ended, 0, "what is freed calls nothing");
}

// The n-th call fails from here on; 0: none does.
static int fails_at;

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    errno = ENOSPC;
    return op != EPOLL_CTL_DEL && fails_at > 0 && --fails_at == 0
               ? -1
               : (int)syscall(SYS_epoll_ctl, epfd, op, fd, event);
}

// A socket that the kernel does not watch (max_user_watches) ends its request, and no other.
static void the_kernel_refuses(void)
{
    int most = 0, unended = 0, calls = 0;
    for (bool struck = true; struck; calls++) {
        struct fetch *f = begin(4);
        int ended = 0, wrong = 0;
        struct asked a = {f, FETCH_OK, &ended, &wrong, NULL, 0};
        char url[100];
        set_url(url, "/ok");
        fails_at = calls + 1;
        for (int i = 0; i < 8; i++)
            fetch_start(f, &(struct fetch_request){.url = url}, one_ended, &a, NULL);
        fetch_run(f, NULL);
        struck = !fails_at;
        fails_at = 0;
        unended += ended != 8;
        most = wrong > most ? wrong : most;
        fetch_free(f);
    }
    CHECK(calls > 8, "each of %d calls failed once", calls - 1);
    CHECK_INT(unended, 0, "all requests ended");
    CHECK_INT(most, 1, "one of them failed, at most");
}

int main(void)
{
    hostile_start(&server);
    each_ends_once(IN_FLIGHT);
    each_ends_once(1);
    on_one_descriptor();
    bad_addresses();
    silent_ones_end();
    stop();
    the_kernel_refuses();
    hostile_stop(&server);
    return tap_done();
}

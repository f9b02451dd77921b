// SPDX-License-Identifier: Apache-2.0
// libmicrohttpd inside our loop: before every wait of the loop each of its daemons for which
// something has come runs once and says how long it may sleep. A request that waits is a suspended
// connection: it costs memory and nothing else.
#include "http/server/server.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "http/server/parts.h"

// The sooner of two waits in milliseconds; < 0: for ever.
static int64_t sooner(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

// A daemon's run asks the kernel for its events. Without a need that would be done in every round:
// of a collector there are thousands a second.
//
// New connections are accepted after it: of a client that has gone, the library has then read what
// came before the end, and its place is free (connections_sweep).
static int64_t run_listener(struct listener *l)
{
    MHD_UNSIGNED_LONG_LONG ms;
    const int64_t now = clock_mono_ms();
    arrivals_admit(l);
    if (l->touched || now >= l->due_ms || l->server->stopping) {
        l->touched = false;
        MHD_run(l->mhd);
        arrivals_given(l);
        l->due_ms = MHD_get_timeout(l->mhd, &ms) == MHD_YES ? now + (int64_t)ms : INT64_MAX;
    }
    arrivals_accept(l);
    if (l->touched)
        return 0;
    int64_t left = l->due_ms == INT64_MAX ? -1 : l->due_ms > now ? l->due_ms - now : 0;
    return sooner(left, arrivals_ms(l));
}

// Runs every daemon after each round of the loop; the time until the next deadline of one.
static int64_t run_all(void *ctx)
{
    struct server *s = ctx;
    server_give_turns(s);
    server_wake_some(s);
    int64_t least = -1;
    for (int i = 0; i < s->n; i++)
        least = sooner(least, run_listener(&s->listeners[i]));
    return sooner(least, s->waking ? 0 : server_turn_ms(s));
}

// Of the certificate in use, which is better than no server at all.
static void log_doubt(const struct server *s)
{
    struct err why = {0};
    if (tls_valid_now(s->tls, &why) < 0)
        log_event(LOG_LVL_WARN, "tls.certificate", "problem=\"%s\"", log_quote(why.text).text);
}

static int server_start(struct server *s, const struct http_config *c, struct err *err)
{
    if (tls_open(&s->tls, c, err) < 0)
        return -1;
    log_doubt(s);
    if (getrandom(&s->salt, sizeof s->salt, 0) != sizeof s->salt)
        return err_sys(err, "no random numbers");
    if (server_jobs_start(s, err) < 0 || listeners_start(s, c, err) < 0)
        return -1;
    loop_set_prepare(s->loop, run_all, s);
    return 0;
}

int server_doubt(const struct http_config *c, struct err *why)
{
    struct tls *tls = NULL;
    int rc = tls_open(&tls, c, why);
    if (rc == 0)
        rc = tls_valid_now(tls, why);
    tls_release(tls);
    return rc;
}

int server_renew_tls(struct server *s, const struct http_config *c, struct err *err)
{
    char until[32];
    int rc = tls_renew(&s->tls, c, err);
    if (rc < 0)
        return err_name_member(err);
    log_doubt(s);
    if (rc > 0) {
        clock_rfc3339(tls_valid_until_ms(s->tls), until);
        log_event(LOG_LVL_INFO, "tls.certificate",
                  "text=\"the files of TLS have changed and are in use\" until=%.19sZ", until);
    }
    return 0;
}

int server_replaced(struct http_config *c, bool insecure_plaintext, struct err *err)
{
    return listeners_replace(c, insecure_plaintext, err);
}

int server_check(const struct http_config *c, bool insecure_plaintext, struct err *err)
{
    struct tls *tls = NULL;
    int rc = tls_open(&tls, c, err);
    if (rc == 0)
        rc = listeners_check(c, insecure_plaintext, tls != NULL, err);
    tls_release(tls);
    return rc;
}

// "node1.cluster,node1". No page of another site has such a name, unless its owner also names the
// machine or serves the network's domain. Read once, and DNS is not asked.
static void find_own_names(struct server *s)
{
    char name[HOST_NAME_MAX + 1];
    if (gethostname(name, sizeof name) < 0 || !str_is_host(name, strlen(name)))
        return;
    snprintf(s->own_names, sizeof s->own_names, "%s,%.*s", name, (int)strcspn(name, "."), name);
}

struct server *server_new(struct loop *loop, const struct http_service *service,
                          const struct access_rules *access, const struct http_config *c,
                          struct err *err)
{
    struct server *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the server");
        return NULL;
    }
    s->loop = loop;
    s->service = service;
    s->access = *access;
    s->names = c->names;
    find_own_names(s);
    s->connections = c->connections;
    s->hung_up = exchange_leave_queues;
    s->waking_end = &s->waking;
    if (server_start(s, c, err) < 0) {
        server_free(s);
        return NULL;
    }
    return s;
}

// The library must not be stopped while a connection is suspended: answer those that wait first.
static void server_wake_all(struct server *s)
{
    for (struct exchange *x = LIST_FIRST(&s->exchanges); x; x = LIST_NEXT(x, entry))
        exchange_resume(x);
    do
        run_all(s);
    while (s->waking);
    run_all(s); // the first round takes them back, the second sends what is left
}

void server_free(struct server *s)
{
    if (!s)
        return;
    s->stopping = true;
    s->stopping_ms = clock_mono_ms();
    loop_set_prepare(s->loop, NULL, NULL);
    server_wake_all(s);
    listeners_stop(s);
    server_jobs_stop(s);
    tls_release(s->tls);
    free(s);
}

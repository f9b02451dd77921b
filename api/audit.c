// SPDX-License-Identifier: Apache-2.0
#include "api/audit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"

static bool may_write(struct audit *a, int64_t now_ms)
{
    if (a->full_ms < now_ms)
        a->full_ms = now_ms;
    if (a->full_ms - now_ms > (AUDIT_BURST - 1) * AUDIT_EVERY_MS) {
        a->left_out++;
        return false;
    }
    a->full_ms += AUDIT_EVERY_MS;
    return true;
}

// "uid:1000", or the address: what the kernel says, whatever the request says.
static void write_origin(const struct line *l, char out[static INET6_ADDRSTRLEN])
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    snprintf(out, INET6_ADDRSTRLEN, "?");
    if (l->local)
        snprintf(out, INET6_ADDRSTRLEN, "uid:%u", (unsigned)l->uid);
    else if (getpeername(l->fd, (struct sockaddr *)&a, &n) == 0)
        inet_ntop(a.ss_family,
                  a.ss_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)&a)->sin6_addr
                                          : (void *)&((struct sockaddr_in *)&a)->sin_addr,
                  out, INET6_ADDRSTRLEN);
}

void audit_request(struct audit *a, const struct request *q, const struct line *l, int status,
                   int64_t now_ms)
{
    char from[INET6_ADDRSTRLEN];
    bool changes = strcmp(q->method, "GET") != 0 && strcmp(q->method, "HEAD") != 0;
    bool refused = status == 401 || status == 403 || status == 421;
    enum log_level level = refused ? LOG_LVL_WARN : changes ? LOG_LVL_INFO : LOG_LVL_DEBUG;
    if (!log_wants(level))
        return;
    // Who may change things is trusted with the log; strangers share what there is for them.
    if (refused && !may_write(a, now_ms))
        return;
    write_origin(l, from);
    log_event(level, refused ? "refused" : "request",
              "id=%s from=%s token=%s method=%.16s path=%.200s status=%d left_out=%u", q->id, from,
              *q->token ? q->token : "-", q->method, q->path, status, refused ? a->left_out : 0);
    a->left_out = refused ? 0 : a->left_out;
}

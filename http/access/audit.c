// SPDX-License-Identifier: Apache-2.0
// Each client has a budget of log lines, and strangers together have one more.
#include "http/access/audit.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"

// The client's budget. A new client gets the place of the one that was longest quiet: its budget is
// the fullest.
static struct log_budget *budget_of(struct audit *a, uint64_t client, bool trusted)
{
    struct audit_client *list = trusted ? a->trusted : a->strangers, *quiet = &list[0];
    for (int i = 0; i < AUDIT_CLIENTS; i++) {
        if (list[i].client == client && list[i].budget.full_ms)
            return &list[i].budget;
        if (list[i].budget.full_ms < quiet->budget.full_ms)
            quiet = &list[i];
    }
    *quiet = (struct audit_client){.client = client};
    return &quiet->budget;
}

bool audit_may_write(struct audit *a, uint64_t client, bool trusted, int64_t now_ms)
{
    struct log_budget *own = budget_of(a, client, trusted);
    if (log_budget_take(own, AUDIT_BURST, trusted ? AUDIT_TRUSTED_EVERY_MS : AUDIT_EVERY_MS,
                        now_ms) &&
        (trusted || log_budget_take(&a->all, AUDIT_ALL_BURST, AUDIT_ALL_EVERY_MS, now_ms)))
        return true;
    a->left_out++;
    return false;
}

// Clients with the same token are one client, from wherever they ask.
static uint64_t audit_client_of(const struct request *q, const struct peer *from)
{
    return *q->token ? hash_text(q->token) : from->client;
}

// Words of a request as they may stand in a log: no byte of it controls a terminal.
static void write_plain(const char *text, char *out, size_t room)
{
    size_t n = 0;
    for (; text[n] && n < room - 1; n++)
        out[n] = text[n] > ' ' && text[n] < 0x7f ? text[n] : '?';
    out[n] = '\0';
}

void audit_request(struct audit *a, const struct request *q, const struct peer *from, int status,
                   int64_t now_ms)
{
    char method[17], path[201];
    const bool changes = strcmp(q->method, "GET") != 0 && strcmp(q->method, "HEAD") != 0;
    const bool refused = status == 401 || status == 403 || status == 421;
    const bool trusted = q->granted >= SCOPE_RUN, done = status >= 200 && status < 400;
    const enum log_level level = refused ? LOG_LVL_WARN : changes ? LOG_LVL_INFO : LOG_LVL_DEBUG;
    if (!log_wants(level))
        return;
    if (!(done && (level == LOG_LVL_DEBUG || (trusted && !q->dry_run))) &&
        !audit_may_write(a, audit_client_of(q, from), trusted, now_ms))
        return;
    write_plain(q->method, method, sizeof method);
    write_plain(q->path, path, sizeof path);
    log_event(level, refused ? "refused" : "request",
              "id=%s from=%s token=%s method=%s path=%s status=%d left_out=%u", q->id, from->text,
              *q->token ? q->token : "-", method, path, status, a->left_out);
    a->left_out = 0;
}

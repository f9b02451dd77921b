// SPDX-License-Identifier: Apache-2.0
// What a client has used is paid off by time. Clients share SHARE_CLIENTS places by a hash.
#include "http/server/share.h"

static int64_t used_now(const struct share *s, int at, int64_t now_ms)
{
    int64_t paid = (now_ms - s->list[at].at_ms) * SHARE_PERMILLE;
    return s->list[at].used_us > paid ? s->list[at].used_us - paid : 0;
}

static int share_place_of(uint64_t client)
{
    return (int)((client * 0x9e3779b97f4a7c15u >> 32) % SHARE_CLIENTS);
}

void share_charge(struct share *s, uint64_t client, int64_t us, int64_t now_ms)
{
    enum { MOST = SHARE_FREE_US + SHARE_WAIT_MAX_MS * SHARE_PERMILLE };
    int at = share_place_of(client);
    int64_t used = used_now(s, at, now_ms) + us;
    s->list[at].used_us = used < MOST ? used : MOST;
    s->list[at].at_ms = now_ms;
}

int64_t share_wait_ms(const struct share *s, uint64_t client, int64_t now_ms)
{
    int64_t debt = used_now(s, share_place_of(client), now_ms) - SHARE_FREE_US;
    return debt > 0 ? debt / SHARE_PERMILLE + 1 : 0;
}

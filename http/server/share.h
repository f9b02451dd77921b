// SPDX-License-Identifier: Apache-2.0
// How much of the loop's time a client takes while a run is measured: an account of what it has
// used, from which SHARE_PERMILLE of the time is paid off. Who is in debt waits.
#pragma once
#include <stdint.h>

enum {
    SHARE_PERMILLE = 20,
    SHARE_FREE_US = 100000, // a page of the dashboard, or ten scrapes
    SHARE_WAIT_MAX_MS = 2000,
    SHARE_EXCHANGE_US = 100,  // of each request: to read it and to answer
    SHARE_ARRIVAL_US = 30,    // of each connection: to accept it and to find out whose it is
    SHARE_LINE_US = 70,       // of each that is served: to take it in and to close it
    SHARE_TLS_US = 2000,      // of each with TLS: the handshake, with a key of RSA 2048
    SHARE_BYTES_US = 1 << 10, // so many bytes sent take 1 us
    SHARE_CLIENTS = 64,       // clients that share a place pay together
};

struct share {
    struct {
        int64_t used_us, at_ms;
    } list[SHARE_CLIENTS];
};

void share_charge(struct share *s, uint64_t client, int64_t us, int64_t now_ms);
int64_t share_wait_ms(const struct share *s, uint64_t client, int64_t now_ms); // 0: it may go

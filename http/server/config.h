// SPDX-License-Identifier: Apache-2.0
// Settings of a server: where it listens, for which hosts, and how much it serves at once.
#pragma once

// How many connections a listener serves at once: a quarter for one account, three quarters for one
// address; half as many may wait (connections.h). Each costs CONNECTION_MEMORY of listeners.c at
// the worst: 16 KiB, with the 128 that may be there beyond the limit for a moment 5 MiB by default
// and 258 MiB at the most.
enum { CONNECTIONS_MIN = 16, CONNECTIONS_MAX = 16384 };

struct http_config {
    int connections;    // CONNECTIONS_MIN…CONNECTIONS_MAX
    const char *listen; // "127.0.0.1:7780,[::1]:7780"; "" for none
    const char *names;  // hosts that the daemon is asked as, besides loopback; comma-separated
    const char *tls_certificate, *tls_key, *tls_client_ca; // files in PEM; "" for none
    const char *socket; // path of a unix socket; "" for none. A stale one is removed: the caller
                        // has made sure that no other process serves it.
    // Sockets that listen already, handed over by systemd: TCP ones are served in the place of
    // `listen`, unix ones in the place of `socket`. They are the server's, and their paths are not:
    // who made them removes them. NULL: not known, as for a check.
    const int *passed;
    int n_passed;
};

// SPDX-License-Identifier: Apache-2.0
// What systemd and the daemon report to each other: state on a datagram socket, a watchdog,
// listening sockets that are handed over. Spoken by hand: no library is needed for three variables.
// Started by anything else, every function here does nothing.
#pragma once
#include "base/err.h"
#include "core/os/loop.h"

enum {
    SERVICE_FD_FIRST = 3, // of the file descriptors handed over
    SERVICE_FDS_MAX = 8,
};

struct service;

// Reads and removes NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID, LISTEN_FDS, LISTEN_PID and
// LISTEN_FDNAMES, so that no child takes them for its own. Errors name the variable.
struct service *service_new(struct loop *l, struct err *err);
void service_free(struct service *s); // NULL is fine

// Descriptors of sockets handed over, close-on-exec now; they are whoever's takes them.
int service_fds(const struct service *s, const int **fds);

void service_ready(struct service *s); // also after a reload; the watchdog begins
void service_reloading(struct service *s);
void service_stopping(struct service *s);
// One line for people, shown by systemctl status.
__attribute__((format(printf, 2, 3))) void service_status(struct service *s, const char *fmt, ...);

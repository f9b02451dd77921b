// SPDX-License-Identifier: Apache-2.0
// The daemon's Unix socket: where it is, and what to do when this account may not connect to it.
#pragma once
#include <stdbool.h>

#include "base/err.h"

#define SOCKET_OF_SYSTEM "/run/numaprobe/numaprobed.sock"
#define SOCKET_OF_COLLECTOR "/run/numaprobe-fleet/numaprobe-fleetd.sock"

bool socket_denied(const char *path); // it exists, or its folder does, and is closed to us
// ERR_FORBIDDEN: names the socket, its group, and the command that joins it.
int socket_set_denied(const char *path, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Reading a source: what may take its time, starts other programs, or parses what strangers wrote.
#pragma once
#include "base/buf.h"
#include "fleet/settings/config.h"

enum { NAMING_MEMORY = 512 << 20 }; // bytes that the child may take

// "file:/etc/nodes" as sorted lines (nodes/named.h). Errors say what the source lacks.
int naming_read(const struct fleetd_config *c, const char *source, struct buf *out,
                struct err *err);
// The child: numaprobe-fleetd --naming GROUPS_FILE GROUP_COMMAND CA CERTIFICATE KEY TOKEN_FILE
// HOSTS_FILE. Its stdin is a file with the source. Prints the lines, or '!' and the error.
// Exit status: 1 after an error.
int naming_main(int argc, char **argv);

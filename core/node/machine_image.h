// SPDX-License-Identifier: Apache-2.0
// What another process of this program has to know of the machine: the topology, its XML and the
// host's name, in a sealed memory file. hwloc is not asked twice, and both see the same machine.
#pragma once
#include "core/node/machine.h"

int machine_image_make(const struct machine *m,
                       struct err *err); // the file descriptor; the caller closes
// Of a file that machine_image_make of the same program made. What *m points to lives as long as
// the process: it is for one that keeps it to its end. The fingerprint stays empty.
int machine_image_open(struct machine *m, int fd, struct err *err);

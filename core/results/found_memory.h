// SPDX-License-Identifier: Apache-2.0
// Caches as they were measured: the newest stored run of `hierarchy` on this machine says whether
// there is a cache beyond those that the kernel lists. Sizes of other runs follow from it.
#pragma once
#include "core/node/machine.h"
#include "core/store/store.h"

// Sets m->topology.found. The run is read once: again only when another one is the newest, or the
// machine was read again. Runs count that succeeded on this node and this hardware, by the method
// of today, all on huge pages.
int found_memory_look(struct machine *m, struct store *s, struct err *err);

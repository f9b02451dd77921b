// SPDX-License-Identifier: Apache-2.0
// The machine, read once and kept: topology (hwloc) and fingerprint, which the runner reads anew
// before each plan. The only module that includes hwloc.h is core/node/hwloc.c; facts come from
// /proc and /sys (core/node/facts.c), below a root that tests set.
#pragma once
#include "base/err.h"
#include "model/fingerprint.h"
#include "model/topology.h"

struct machine {
    struct topology topology;
    char *topology_xml; // hwloc's own XML; owned
    struct fingerprint fingerprint;
    char hostname[64];
    // What comes and goes, as the kernel reported it then; owned; NULL: it could not be read.
    char *seen;
    int64_t readings; // how often it was read: what was made from it before is of another machine
};

// CPUs and nodes are `allowed` that the kernel lets this process use (cpuset and affinity).
// Reads the topology by hwloc (its environment variables HWLOC_XMLFILE, HWLOC_SYNTHETIC,
// HWLOC_FSROOT work: then topology.this_system is false and probing real memory is refused by
// admission), and the fingerprint. `root` is "" or a directory that holds proc/ and sys/ (tests).
int machine_read(struct machine *m, const char *root, struct err *err);
// CPUs and memory come and go (hot-unplug, chcpu, chmem), and what of them this process may use
// (cpusets). 1: they have, and the machine was read again; what it was is in *was, for the caller
// to machine_fini. 0: it is as it was, or cannot be looked at now. -1: *m and
// *was are unchanged. Four small files and one for each node: about 50 us on two nodes.
int machine_refresh(struct machine *m, struct machine *was, const char *root, struct err *err);
void machine_fini(struct machine *m);

// Fresh facts only (before every run: the configuration may have changed). Sealed.
void fingerprint_read(struct fingerprint *f, const struct topology *t, const char *root);

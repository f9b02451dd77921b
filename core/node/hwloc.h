// SPDX-License-Identifier: Apache-2.0
// The door to hwloc: a topology as hwloc reports it.
#pragma once
#include "base/err.h"
#include "model/topology.h"

// *xml is hwloc's own, malloc'ed. Reads what hwloc's environment variables say, else this machine.
int probe_topology(struct topology *t, char **xml, struct err *err);
// The topology of another time from such XML; core/node/hwloc_stored.h says what it is. hwloc may
// end the process.
int probe_topology_xml(struct topology *t, const char *xml, struct err *err);

// A value of a memory attribute: from the CPUs of a node to a node's memory (OS numbers).
struct probe_value {
    int initiator, target;
    uint64_t value;
};
struct probe_attribute { // borrowed
    const char *name;    // one of hwloc's own ("Latency": ns, "Bandwidth": MiB/s …) or another
    bool more_is_better;
    const struct probe_value *values;
    int n;
};
struct probe_fact {
    const char *name, *value;
};
struct probe_annotations { // borrowed
    const struct probe_attribute *attributes;
    int n_attributes;
    const struct probe_fact *facts; // of the machine
    int n_facts;
};
// *out is the XML with these, malloc'ed. Values of nodes that it does not have are left out.
int probe_topology_annotate(const char *xml, const struct probe_annotations *with, char **out,
                            struct err *err);
const char *probe_library(void); // "2.9.0"

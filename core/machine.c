// SPDX-License-Identifier: Apache-2.0
#include "core/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/probe.h"

int machine_read(struct machine *m, const char *root, struct err *err)
{
    struct machine got = {0};
    if (probe_topology(&got.topology, &got.topology_xml, err) < 0)
        return -1;
    if (fingerprint_read(&got.fingerprint, &got.topology, root, err) < 0) {
        machine_fini(&got);
        return -1;
    }
    if (gethostname(got.hostname, sizeof got.hostname - 1) < 0)
        snprintf(got.hostname, sizeof got.hostname, "localhost");
    *m = got;
    return 0;
}

void machine_fini(struct machine *m)
{
    topology_fini(&m->topology);
    free(m->topology_xml);
    memset(m, 0, sizeof *m);
}

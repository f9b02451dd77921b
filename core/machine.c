// SPDX-License-Identifier: Apache-2.0
#include "core/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/probe.h"

// Lists that are too long are compared as far as there is room. False: they cannot be read now.
static bool read_online(char *out, size_t room, const char *root)
{
    static const char *const files[] = {"cpu/online", "node/online", "node/has_memory"};
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char path[400], text[256];
        snprintf(path, sizeof path, "%s/sys/devices/system/%s", root, files[i]);
        if (file_read_text(path, text, sizeof text) < 0)
            return false;
        int added = snprintf(out + n, room - n, "%s;", text);
        n = n + (size_t)added < room ? n + (size_t)added : room - 1;
    }
    return true;
}

int machine_refresh(struct machine *m, const char *root, struct err *err)
{
    char now[sizeof m->online];
    if (!m->topology.this_system || !read_online(now, sizeof now, root) ||
        strcmp(now, m->online) == 0)
        return 0;
    struct machine got;
    if (machine_read(&got, root, err) < 0)
        return -1;
    machine_fini(m);
    *m = got;
    return 1;
}

int machine_read(struct machine *m, const char *root, struct err *err)
{
    struct machine got = {0};
    if (probe_topology(&got.topology, &got.topology_xml, err) < 0)
        return -1;
    if (fingerprint_read(&got.fingerprint, &got.topology, root, err) < 0) {
        machine_fini(&got);
        return -1;
    }
    if (!read_online(got.online, sizeof got.online, root))
        *got.online = '\0';
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

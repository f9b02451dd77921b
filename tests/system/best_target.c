// SPDX-License-Identifier: Apache-2.0
// What a program gets that asks hwloc for the best memory: reads a topology as XML and prints, for
// the CPUs of each NUMA node, the best target of an attribute and its value: "0 5 90".
#include <hwloc.h>
#include <hwloc/memattrs.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    hwloc_topology_t h;
    hwloc_memattr_id_t attribute;
    hwloc_obj_t node = NULL, best;
    hwloc_uint64_t value;
    if (argc != 3 || hwloc_topology_init(&h) < 0 || hwloc_topology_set_xml(h, argv[1]) < 0 ||
        hwloc_topology_set_flags(h, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) < 0 ||
        hwloc_topology_load(h) < 0)
        return 2;
    if (hwloc_memattr_get_by_name(h, argv[2], &attribute) < 0)
        return 1;
    while ((node = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_NUMANODE, node))) {
        struct hwloc_location cpus = {.type = HWLOC_LOCATION_TYPE_CPUSET,
                                      .location.cpuset = node->cpuset};
        if (hwloc_memattr_get_best_target(h, attribute, &cpus, 0, &best, &value) == 0)
            printf("%u %u %llu\n", node->os_index, best->os_index, (unsigned long long)value);
    }
    hwloc_topology_destroy(h);
    return 0;
}

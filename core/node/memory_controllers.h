// SPDX-License-Identifier: Apache-2.0
// The memory controllers that the kernel's EDAC drivers found: mc0, mc1 …
#pragma once

#define MEMORY_CONTROLLERS "sys/devices/system/edac/mc" // below the root

// Their numbers, ascending, which may have gaps. *numbers is malloc'ed (caller frees). Returns how
// many; 0 where there is no such driver, or no memory for the list.
int memory_controllers_list(int **numbers, const char *root);

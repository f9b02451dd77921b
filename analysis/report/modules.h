// SPDX-License-Identifier: Apache-2.0
// What the memory modules of a machine could deliver, and what of that was reached. Pure.
#pragma once
#include "analysis/report/section.h"

// The finding that `nodes` nodes reach so much together of what the modules could deliver. From the
// facts `dimms` ("16x64G DDR5-4800 2R, …; slots …"), `dimm_channels` ("8: mc0 0-7") and
// `dimm_speed` ("4800 MT/s", which goes before the rated speed). None where the modules are not
// known, or where other nodes of the machine have CPUs too.
void report_modules(struct report_out *o, const struct report_source *s, int nodes,
                    double reached_mbps);

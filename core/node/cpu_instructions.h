// SPDX-License-Identifier: Apache-2.0
// Which instructions the CPUs of this machine have, of those that a run can choose.
#pragma once

// Bits of enum cpu_instructions, as the first CPU of ROOT/proc/cpuinfo lists them. 0: not known.
unsigned cpu_instructions_read(const char *root);

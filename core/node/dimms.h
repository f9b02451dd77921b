// SPDX-License-Identifier: Apache-2.0
// The memory modules of a machine, from the tables of its firmware (SMBIOS 3.7, section 7.18). Two
// nodes of one model with other modules, or with the same ones in other slots, have other
// bandwidths. Only sizes, kinds, speeds and slots are read: serial numbers differ on every node.
#pragma once
#include <stddef.h>

enum { DIMMS_MAX = 256, DIMMS_TABLE_MAX = 1 << 20, DIMMS_TEXT_ROOM = 4096 };

// `table`: the structures, n bytes of which none is trusted. Writes "16x64G DDR5-4800 2R; slots
// 0-15 of 16", several kinds separated by commas, and the speeds that are set up: "4400 MT/s". ""
// where the table does not say.
void dimms_describe(const unsigned char *table, size_t n, char modules[static DIMMS_TEXT_ROOM],
                    char speed[static DIMMS_TEXT_ROOM]);

// SPDX-License-Identifier: Apache-2.0
// The process that reads the history for responses: `numaprobe-fleetd --work GROUPS_FILE`.
#pragma once

enum { READING_STORE_FD = 4 }; // of the process: where the store is. It may have a password

int reading_main(int argc, char **argv); // exit status

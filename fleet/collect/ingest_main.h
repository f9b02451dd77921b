// SPDX-License-Identifier: Apache-2.0
// The process that stores: `numaprobe-fleetd --ingest DAYS ARCHIVE DAYS`, with the
// store in INGEST_STORE_FD.
#pragma once

enum { INGEST_MEMORY = 768 << 20 }; // bytes that it may take

int ingest_main(int argc, char **argv); // exit status

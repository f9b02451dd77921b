// SPDX-License-Identifier: Apache-2.0
// The process that stores: `numaprobe-fleetd --ingest DAYS ARCHIVE DAYS`, with the
// store in INGEST_STORE_FD.
#pragma once

int ingest_main(int argc, char **argv); // exit status

// SPDX-License-Identifier: Apache-2.0
// The process that stores: `numaprobe-fleetd --ingest STORE DAYS`.
#pragma once

int ingest_main(int argc, char **argv); // exit status

// SPDX-License-Identifier: Apache-2.0
// The process that reads the history for responses: `numaprobe-fleetd --work STORE`.
#pragma once

int reading_main(int argc, char **argv); // exit status

// SPDX-License-Identifier: Apache-2.0
// The program numaprobe-fleetd: the collector, and its processes that store and that read.
#pragma once

int fleetd_main(int argc, char **argv); // exit status

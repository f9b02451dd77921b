// SPDX-License-Identifier: Apache-2.0
// The process that judges the fleet once and ends (fleet/collect/judging.h).
#pragma once

int judging_main(int argc, char **argv); // exit status

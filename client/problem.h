// SPDX-License-Identifier: Apache-2.0
// What went wrong, for people, on stderr.
#pragma once
#include "base/err.h"

// Prints "numaprobe: <about>: <member>: <text>"; `about` may be NULL. Returns the exit status.
int problem_report(const char *about, const struct err *err);

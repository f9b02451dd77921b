// SPDX-License-Identifier: Apache-2.0
// What went wrong, for people, on stderr.
#pragma once
#include "base/buf.h"
#include "base/err.h"

// "<member>: <text>", with the option for a member of a run: "--run-timeout: must be …".
void problem_write(const struct err *err, struct buf *out);
// Prints "numaprobe: <about>: " and that; `about` may be NULL. Returns the exit status.
int problem_report(const char *about, const struct err *err);

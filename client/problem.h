// SPDX-License-Identifier: Apache-2.0
// What went wrong, for people, on stderr.
#pragma once
#include "base/buf.h"
#include "base/err.h"

// "<member>: <text>", with the option for a member of a run: "--run-timeout: must be …".
void problem_write(const struct err *err, struct buf *out);
// Prints "numaprobe: <about>: " and that; `about` may be NULL. Returns the exit status.
int problem_report(const char *about, const struct err *err);
// A line behind the error that problem_report prints next: what a user can do. A constant.
void problem_hint(const char *text);
// Instead of the line behind an error of access that names the socket and --token-file. A constant.
void problem_access(const char *text);
// From now on errors are those of a fleet's collector: hints name its socket and --fleet.
void problem_of_collector(void);

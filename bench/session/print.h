// SPDX-License-Identifier: Apache-2.0
// Results for people and scripts, on stdout.
#pragma once
#include <stdio.h>

#include "base/err.h"
#include "bench/session/emit.h"

// "=== Debug Information ===": what runs where, as the classic program printed it.
void print_diagnostics(const struct emit *e, FILE *out);
// In the requested format. ERR_SYSTEM if `out` does not take it.
int print_results(const struct emit *e, FILE *out, struct err *err);
// A value at fault is named by its option, `--size=8T`.
void print_failure(const struct options *o, const struct err *why, FILE *out);

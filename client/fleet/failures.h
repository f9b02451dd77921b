// SPDX-License-Identifier: Apache-2.0
// Nodes that failed, folded: a line or an object per reason, with the set of its nodes.
#pragma once
#include <stdio.h>

#include "base/err.h"
#include "base/jsonw.h"

struct failure {
    const char *node; // borrowed, as `why`
    const char *why;  // a sentence that does not name the node
    enum err_code code;
};

enum { FAILURE_REASONS_MAX = 40 }; // lines that are printed
void failures_print(const struct failure *list, int n, FILE *out);
// [{"nodes":"n[1-3]","count":3,"error":"unreachable","text":"…"},…], all of them
void failures_write(const struct failure *list, int n, struct jsonw *w, const char *key);

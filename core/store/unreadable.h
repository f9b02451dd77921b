// SPDX-License-Identifier: Apache-2.0
// What is stored and cannot be read: another version wrote it, or it was changed.
#pragma once
#include <stdbool.h>

#include "base/err.h"

// An error about a stored text becomes ERR_CONFLICT with "<what>: " before it: no request is wrong,
// the database as a whole is not damaged, and the next try fails too. A lack of memory stays what
// it is. Returns -1.
__attribute__((format(printf, 2, 3))) int store_unreadable(struct err *err, const char *fmt, ...);
// Whether an error ends only what needs this one run, so that a search continues with the next.
bool store_of_one_run(const struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Inside the store only: what is written together.
#pragma once
#include "base/err.h"

struct store;
int store_begin(struct store *s, struct err *err);
// Commits if `result` is 0, else rolls back; returns -1 if anything failed.
int store_end(struct store *s, int result, struct err *err);

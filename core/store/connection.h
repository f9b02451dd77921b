// SPDX-License-Identifier: Apache-2.0
// Inside the store only: opens and closes the connection that writes.
#pragma once
#include <stdbool.h>

#include "base/err.h"

struct store;
int store_db_open(struct store *s, struct err *err); // all but the locks
// `checkpoint`: a healthy database; the log of a damaged one stays as it is.
void store_db_close(struct store *s, bool checkpoint);

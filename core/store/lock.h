// SPDX-License-Identifier: Apache-2.0
// Inside the store only: the state directory and its locks.
#pragma once
#include <stdbool.h>

#include "base/err.h"

struct store;
// ERR_STORAGE (member "state-dir").
int store_dir_make(const char *dir, struct err *err);
// The locks of the state directory, by the names that it and its file `lock` have now; those that
// are held already stay as they are. ERR_CONFLICT: another daemon works with it.
int store_lock_take(struct store *s, struct err *err);
void store_lock_drop(struct store *s);
// Whether `dir` itself is locked. If not (its file system knows no such locks), only the file is:
// a process that deletes it lets a second daemon in.
bool store_dir_is_locked(const struct store *s);

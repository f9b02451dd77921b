// SPDX-License-Identifier: Apache-2.0
// Inside the store only: whether the files at the database's path are those that are open.
#pragma once
#include <stdbool.h>

#include "base/err.h"

struct store;
enum store_files { FILES_SAME, FILES_MOVED, FILES_CUT, FILES_UNKNOWN };
void store_files_note(struct store *s);  // which files are ours: those just opened
void store_files_grown(struct store *s); // after each commit
enum store_files store_files_look(const struct store *s);
int store_files_check(struct store *s, struct err *err); // ERR_DAMAGED unless they are the same
bool store_files_replaced(const struct store *s); // another file has the name of the database

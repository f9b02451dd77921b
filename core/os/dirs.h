// SPDX-License-Identifier: Apache-2.0
// Directories with their parents, as mkdir -p makes them.
#pragma once
#include <sys/types.h>

#include "base/err.h"

// Makes `path` with `mode` and the parents that are missing with `parents`. A directory that exists
// keeps its mode.
int dirs_make(const char *path, mode_t parents, mode_t mode, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Directories with their parents, as mkdir -p makes them.
#pragma once
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

// Makes `path` with `mode` and the parents that are missing with `parents`. A directory that exists
// keeps its mode.
int dirs_make(const char *path, mode_t parents, mode_t mode, struct err *err);
// Fills *out unless it is set already: the first directory of what systemd made for us (variable
// `systemd`), else for root the system's place, else the same name below the directory of variable
// `xdg`, else `below_home` (NULL: nothing) below HOME. It may stay empty. ERR_USAGE: it is too
// long.
int dirs_default(char *out, size_t room, const char *systemd, const char *system, const char *xdg,
                 const char *below_home, struct err *err);

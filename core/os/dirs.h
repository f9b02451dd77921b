// SPDX-License-Identifier: Apache-2.0
// Directories with their parents, as mkdir -p makes them.
#pragma once
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

// Makes `path` with `mode` and the parents that are missing with `parents`. A directory that exists
// keeps its mode.
int dirs_make(const char *path, mode_t parents, mode_t mode, struct err *err);
// ERR_INVALID, member `name` and text with it: the path is not absolute. Where a daemon is started
// is no place of its own: the unit starts it in /, a user anywhere.
int dirs_check_absolute(const char *name, const char *path, struct err *err);
// The same, or something else than a directory is there.
int dirs_check(const char *name, const char *path, struct err *err);
// Whether the file `path` (member `name`) can be made: its folder is there, or is one of `made`, up
// to NULL, which a start or the unit of systemd makes. One that we may not enter may be there.
// Errors as of dirs_check().
int dirs_check_folder(const char *name, const char *path, const char *const *made, struct err *err);
// Fills *out unless it is set already: the first directory of what systemd made for us (variable
// `systemd`), else for root the system's place, else the same name below the directory of variable
// `xdg`, else `below_home` (NULL: nothing) below HOME. It may stay empty. ERR_USAGE: it is too
// long.
int dirs_default(char *out, size_t room, const char *systemd, const char *system, const char *xdg,
                 const char *below_home, struct err *err);

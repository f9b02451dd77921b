// SPDX-License-Identifier: Apache-2.0
// Programs by name, as a shell finds them.
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define PROGRAM_PATH "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

// The absolute path of a program in a directory of PATH, or of PROGRAM_PATH where PATH is empty or
// not set. False: there is none, and *out is "".
bool program_find(const char *name, char *out, size_t room);
bool program_is_executable(const char *path);

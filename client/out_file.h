// SPDX-License-Identifier: Apache-2.0
// A file that a command writes. It appears whole or not at all: it is written beside under another
// name, which goes with the command, also when that is ended by Ctrl-C, SIGTERM or SIGHUP.
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"

struct out_file {
    FILE *file;
    char path[PATH_MAX]; // what is replaced: where a symbolic link leads to
    char part[PATH_MAX]; // "": a device or a pipe, which is written as it is
};

// `mode` as of open(). `replace` false: ERR_USAGE if the file exists. One at a time.
int out_file_open(struct out_file *o, const char *path, mode_t mode, bool replace, struct err *err);
int out_file_write(struct out_file *o, const char *data, size_t n, struct err *err);
int out_file_keep(struct out_file *o, struct err *err); // it is whole: it gets its name
void out_file_close(struct out_file *o);                // what was not kept is deleted
#define CLEANUP_OUT_FILE CLEANUP(out_file_close)

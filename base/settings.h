// SPDX-License-Identifier: Apache-2.0
// Settings of a program from its configuration file and from the environment, through the same
// tables as its options.
#pragma once
#include "base/param.h"

// Sets what the file names. ERR_USAGE or ERR_INVALID names the file, the line and the setting. With
// `optional` a file that does not exist is empty. What is neither a file nor a device is refused:
// reading a pipe could wait for ever.
int settings_read_file(const struct param_target *targets, int n, const char *path, bool optional,
                       struct err *err);
// Sets what variables name: `prefix` and the parameter's name in capitals. With `keep_empty` an
// empty variable sets the empty text; without it counts as not there. Errors name the variable.
int settings_read_environment(const struct param_target *targets, int n, const char *prefix,
                              bool keep_empty, struct err *err);

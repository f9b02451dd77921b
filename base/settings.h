// SPDX-License-Identifier: Apache-2.0
// Settings of a program from its configuration file and from the environment, through the same
// tables as its options.
#pragma once
#include "base/param.h"

void settings_defaults(const struct param_target *targets, int n);
// Sets what the file names. ERR_USAGE or ERR_INVALID names the file, the line and the setting, of a
// setting that stands twice and may not be repeated both lines. With
// `optional` a file that does not exist is empty. What is neither a file nor a device is refused:
// reading a pipe could wait for ever.
int settings_read_file(const struct param_target *targets, int n, const char *path, bool optional,
                       struct err *err);
// Sets what variables name: `prefix` and the parameter's name in capitals. With `keep_empty` an
// empty variable sets the empty text; without it counts as not there. Errors name the variable.
int settings_read_environment(const struct param_target *targets, int n, const char *prefix,
                              bool keep_empty, struct err *err);

// What a program is started for. Most actions are options that are words, without a value.
enum settings_action {
    SETTINGS_RUN,
    SETTINGS_HELP,
    SETTINGS_VERSION,
    SETTINGS_ROUTES,
    SETTINGS_PRINT, // from here on the settings are read
    SETTINGS_CHECK,
    SETTINGS_OWN,      // the program's own
    SETTINGS_OWN_WITH, // its own with a value
};
extern const struct param_table settings_actions; // those that all programs have; for help alone

struct settings_program {
    const char *name;      // before what it prints
    const char *file;      // that is read unless --config=FILE names another
    const char *prefix;    // of variables: "NUMAPROBED_"
    const char *own;       // option of SETTINGS_OWN; NULL: there is none
    const char *own_with;  // of SETTINGS_OWN_WITH; NULL: there is none
    const char **own_text; // gets its value, in argv
    const struct param_target *targets;
    int n;
};
// Fills the targets: options over variables over the file over defaults; for an action before
// SETTINGS_PRINT options over defaults. Errors name the option, the variable, or the file and its
// line.
int settings_read(const struct settings_program *p, int argc, char **argv,
                  enum settings_action *action, struct err *err);
// For a setting that is found wrong later: puts the variable, or the file and its line, before the
// text, where they set what `err->member` names. Returns -1.
int settings_at_fault(const struct settings_program *p, int argc, char **argv, struct err *err);
// For what a check finds doubtful and a start does with: prints it as a warning on stderr, with the
// same place before it.
void settings_warn(const struct settings_program *p, int argc, char **argv, struct err *why);
// After settings were read again: calls `changed` for those that differ.
typedef void settings_changed(void *ctx, const struct param *p, const char *in_use,
                              const char *wanted);
void settings_compare(const struct param_target *in_use, const struct param_target *wanted, int n,
                      settings_changed *changed, void *ctx);
// Sets those that are live. Others need a restart.
int settings_take_live(const struct param_target *in_use, const struct param_target *wanted, int n,
                       struct err *err);
static inline bool settings_are_used(enum settings_action action)
{
    return action == SETTINGS_RUN || action >= SETTINGS_PRINT;
}

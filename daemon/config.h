// SPDX-License-Identifier: Apache-2.0
// The configuration of the daemon: options over NUMAPROBED_* variables over the configuration file
// over defaults. All from one parameter table.
#pragma once
#include "base/err.h"
#include "base/settings.h"
#include "core/admission/policy.h"
#include "core/store/retention.h"
#include "http/server/settings.h"

struct config {
    struct http_settings http;
    char state_dir[200];
    char run_dir[200];
    char job_user[64];
    struct store_limits limits;
    struct policy policy; // finished
    int log_level;        // index of log_level_names
};

// Of struct config; http_settings_table is of its `http`, and policy_table of its `policy`.
extern const struct param_table config_table;
extern const struct param_table config_actions; // --config, for help; the others: settings_actions
void config_print_help(FILE *out);

// Errors name the option, the variable, or the file and its line.
// With SETTINGS_PRINT and SETTINGS_CHECK everything is checked, and *c has what was asked
// for, with nothing worked out.
int config_read(struct config *c, int argc, char **argv, enum settings_action *action,
                struct err *err);

// Reads everything again as config_read did, into a configuration that is in use, and calls
// `changed` for what differs. Settings that are live are set. On failure nothing has changed.
int config_reload(struct config *c, int argc, char **argv, settings_changed *changed, void *ctx,
                  struct err *err);
// The settings that differ.
void config_compare(struct config *before, struct config *after, settings_changed *changed,
                    void *ctx);
// What a start refuses of a configuration that was read, before it opens anything. `passed`:
// sockets of systemd; NULL: not known.
int config_check(const struct config *c, const int *passed, int n_passed, struct err *err);
// For an error of a setting: puts the place where it was set before the text.
void config_at_fault(int argc, char **argv, struct err *err);
// As a configuration file: what was requested, and the defaults as comments.
void config_print(const struct config *c, FILE *out);

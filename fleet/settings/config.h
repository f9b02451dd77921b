// SPDX-License-Identifier: Apache-2.0
// The configuration of the collector: options over NUMAPROBE_FLEETD_* variables over the
// configuration file over defaults. All from parameter tables.
#pragma once
#include "base/err.h"
#include "base/settings.h"
#include "fleet/store/archive.h"
#include "http/server/settings.h"
#include "nodes/addresses.h"
#include "nodes/sources.h"

enum {
    FLEETD_SOURCES_MAX = 16,
    FLEETD_SOURCE_MAX = 4200, // bytes of a source; the longest is nodes:SET
    FLEETD_TOKEN_ROOM = 200,
};

enum fleetd_drain { FLEETD_DRAIN_SUGGEST, FLEETD_DRAIN_APPLY, FLEETD_DRAINS };

struct fleetd_config {
    struct http_settings http;
    char state_dir[200], run_dir[200];
    char store[FLEET_STORE_WHERE_MAX]; // path, or URI of PostgreSQL
    // Which nodes there are (nodes/sources.h), and how they are reached.
    char source[2048]; // separated by blanks
    char nodes[4096], hostfile[256], from_slurm[128], groups_file[256], group_command[256];
    char url[256], hosts_file[256];
    char node_token_file[256], node_ca[256], node_certificate[256], node_key[256];
    int64_t every_s, push_every_s, at_once, node_timeout_s, keep_days;
    int64_t archive_keep_days;
    bool slurm_submit;
    int drain;           // enum fleetd_drain
    int archive;         // enum fleet_archive
    int log_level;       // index of log_level_names
    const char *move_to; // of SETTINGS_OWN_WITH, in argv
};

// Of struct fleetd_config; http_settings_table is of its `http`.
extern const struct param_table fleetd_table;
extern const struct param_table fleetd_actions; // its own, for help; the others: settings_actions

// fleet_store_check(): settings know no store.
typedef int fleetd_store_check(const char *where, struct err *err);
// Errors name the option, the variable, or the file and its line.
int fleetd_config_read(struct fleetd_config *c, int argc, char **argv, fleetd_store_check *store,
                       enum settings_action *action, struct err *err);
// What a start refuses of addresses, TLS, tokens, groups and hosts_file, before it opens anything.
// `passed`: sockets of systemd.
int fleetd_check_start(const struct fleetd_config *c, const int *passed, int n_passed,
                       struct err *err);
// For an error of a setting: puts the place where it was set before the text.
void fleetd_at_fault(int argc, char **argv, struct err *err);
// Reads everything again and calls `pending` for each setting that differs: all need a restart. -1:
// it cannot be read, or a value is none. Files that it names are not looked at.
int fleetd_config_compare(const struct fleetd_config *c, int argc, char **argv,
                          fleetd_store_check *store, settings_changed *pending, void *ctx,
                          struct err *err);
void fleetd_config_print(const struct fleetd_config *c, FILE *out); // as a configuration file
void fleetd_config_help(FILE *out);
// What hosts_file says, for addresses_free(). NULL: it cannot be read.
struct addresses *fleetd_addresses(const struct fleetd_config *c, struct err *err);
// What node_token_file says; "" where it is not set. ERR_USAGE: others may read it, or it has no
// token.
int fleetd_node_token(const struct fleetd_config *c, char token[static FLEETD_TOKEN_ROOM],
                      struct err *err);
// node_certificate, node_key and node_ca are there and fit; with `now` the certificate has to be
// valid now too. ERR_USAGE.
int fleetd_node_tls(const struct fleetd_config *c, bool now, struct err *err);
// The store is a file, or can become one; nothing is said of a database. ERR_INVALID. A start only
// logs it: the file may come later.
int fleetd_check_file(const struct fleetd_config *c, struct err *err);
// A source as others may see it: without the query of its URL, which may be a key. Returns out.
const char *fleetd_source_shown(const char *source, char out[static FLEETD_SOURCE_MAX]);
// All sources, the short forms (nodes, hostfile, from_slurm) among them. Returns how many, at most
// FLEETD_SOURCES_MAX; -1: ERR_USAGE, one is none, or there are more.
int fleetd_sources(const struct fleetd_config *c,
                   char out[static FLEETD_SOURCES_MAX][FLEETD_SOURCE_MAX], struct err *err);

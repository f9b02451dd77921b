// SPDX-License-Identifier: Apache-2.0
// The settings that every program with a server of HTTP has, as a parameter table, and what follows
// from them. Addresses and the socket have defaults of each program's own, so their rows stand in
// the program's table.
#pragma once
#include "base/param.h"
#include "http/access/access.h"
#include "http/server/config.h"

struct http_settings {
    char listen[256];
    char socket[108];
    int64_t connections; // of a listener
    char host_names[512];
    int anonymous; // enum scope
    char token_file[256];
    char tls_certificate[256], tls_key[256], tls_client_ca[256];
    char tls_client_scope[512];
    char run_group[64], admin_group[64];
    bool insecure_plaintext, insecure_anonymous;
};
extern const struct param_table http_settings_table;

// Sets what is not set: the socket is DIR/PROGRAM.sock of `run_dir` ("none" becomes ""), the file
// of tokens is `tokens` in `state_dir`. ERR_USAGE: a path is too long.
int http_settings_finish(struct http_settings *s, const char *program, const char *state_dir,
                         const char *run_dir, struct err *err);
// What a start would refuse of the finished settings, but for what only binding shows. `made` are
// the directories that a start or systemd makes, with NULL at the end: the socket may be in one
// that does not exist yet. `passed`: sockets that replace settings, which may then be anything;
// NULL: not known. Errors name the setting, in `member` too.
int http_settings_check(const struct http_settings *s, const char *const *made, const int *passed,
                        int n_passed, struct err *err);
// What a start does with and logs, such as certificates that are not valid now. -1 and why.
int http_settings_doubt(const struct http_settings *s, struct err *why);
// Borrows the texts of *s.
struct http_config http_settings_config(const struct http_settings *s);
// Opens the file of tokens and looks the groups up. access->tokens is the caller's to free, also
// after a failure.
int http_settings_access(const struct http_settings *s, struct access_rules *access,
                         struct err *err);

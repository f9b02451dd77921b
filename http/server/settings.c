// SPDX-License-Identifier: Apache-2.0
// Rows as in the tables of the programs: help and limits stand beside the member.
#include "http/server/settings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/os/dirs.h"
#include "core/os/nss.h"
#include "http/access/certificates.h"
#include "http/server/server.h"

#define TEXT(member, ...)                                                                          \
    {                                                                                              \
        .name = #member, .kind = PARAM_TEXT, .offset = offsetof(struct http_settings, member),     \
        .room = sizeof(((struct http_settings *)NULL)->member), __VA_ARGS__                        \
    }

static const char *const scopes[] = {"none", "read", "run", "admin", NULL};

// What is no name of a host would never be the Host of a request.
static int host_names_setting(const char *list, struct err *err)
{
    size_t n;
    for (const char *name; (name = str_list_next(&list, &n));)
        if (!str_is_host(name, n))
            return err_set(err, ERR_INVALID, "",
                           "must be host names with commas between them, without scheme and port: "
                           "proxy.example,[2001:db8::1]; got \"%.*s\"",
                           (int)(n < 60 ? n : 60), name);
    return 0;
}

static const struct param http_params[] = {
    {.name = "connections",
     .kind = PARAM_INT,
     .offset = offsetof(struct http_settings, connections),
     .min = CONNECTIONS_MIN,
     .max = CONNECTIONS_MAX,
     .def = "256",
     .help = "Maximum number of connections to each address and to the socket. One account gets a "
             "quarter of them, one remote address three quarters. Half of them can wait for runs. "
             "A connection needs up to 16 KiB of memory and a file descriptor. Thousands need a "
             "higher LimitNOFILE=."},
    TEXT(
        host_names, .check = host_names_setting, .def = "", .metavar = "LIST",
        .help =
            "Host names accepted in requests, such as those of a proxy. localhost, 127.0.0.1, "
            "[::1] and the address that was contacted are always accepted, and beyond loopback the "
            "machine's host name, in full and its first label."),
    {.name = "anonymous",
     .kind = PARAM_ENUM,
     .offset = offsetof(struct http_settings, anonymous),
     .choices = scopes,
     .def = "read",
     .help =
         "Scope of local users without a token: none, read, run or admin. run and admin are for "
         "development."},
    TEXT(token_file, .def = "", .metavar = "FILE",
         .help = "File with the hashes of tokens (mode 0600). Default: tokens in the state "
                 "directory."),
    TEXT(
        tls_certificate, .def = "", .metavar = "FILE",
        .help =
            "Certificate chain (PEM) for https:// addresses. A reload reads this file, the key and "
            "the client CA again."),
    TEXT(tls_key, .def = "", .metavar = "FILE",
         .help =
             "Private key (PEM) of the certificate. Other accounts must not have access to it."),
    TEXT(tls_client_ca, .def = "", .metavar = "FILE",
         .help = "CA bundle (PEM). TLS clients must present a certificate that it verifies."),
    TEXT(tls_client_scope, .joins = ',', .def = "", .metavar = "CN=NAME:SCOPE",
         .help = "Scope of the clients whose certificate has this common name: read, run or admin. "
                 "They need no token. May be repeated. Needs tls_client_ca."),
    TEXT(run_group, .def = "", .metavar = "GROUP",
         .help = "Members can start runs over the Unix socket. With this option or --admin-group "
                 "all local users can connect to the socket. Without both, only the daemon's own "
                 "group can connect and start runs."),
    TEXT(admin_group, .def = "", .metavar = "GROUP",
         .help = "Members have the scope admin over the Unix socket, like root and the daemon's "
                 "account."),
    {.name = "insecure_plaintext",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct http_settings, insecure_plaintext),
     .def = "false",
     .help = "Serve addresses beyond loopback without TLS. Requests there need a token."},
    {.name = "insecure_anonymous",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct http_settings, insecure_anonymous),
     .def = "false",
     .help = "Allow reading without a token beyond loopback too."},
};
const struct param_table http_settings_table = {http_params, COUNT_OF(http_params)};

int http_settings_finish(struct http_settings *s, const char *program, const char *state_dir,
                         const char *run_dir, struct err *err)
{
    size_t room = sizeof s->socket;
    if (!*s->socket && snprintf(s->socket, room, "%s/%s.sock", run_dir, program) >= (int)room)
        return err_set(err, ERR_USAGE, "socket",
                       "the run directory's path is too long for a socket; name one by --socket");
    if (strcmp(s->socket, "none") == 0)
        s->socket[0] = '\0';
    else if (dirs_check_absolute("socket", s->socket, err) < 0)
        return -1;
    if (*s->tls_client_scope && !*s->tls_client_ca)
        return err_set(err, ERR_USAGE, "tls_client_scope",
                       "tls_client_scope needs tls_client_ca, which verifies the certificates");
    if (certificates_check(s->tls_client_scope, err) < 0)
        return err_prefix(err, "tls_client_scope");
    room = sizeof s->token_file;
    if (!*s->token_file && snprintf(s->token_file, room, "%s/tokens", state_dir) >= (int)room)
        return err_set(err, ERR_USAGE, "state_dir", "--state-dir is too long");
    return 0;
}

struct http_config http_settings_config(const struct http_settings *s)
{
    return (struct http_config){.connections = (int)s->connections,
                                .listen = s->listen,
                                .names = s->host_names,
                                .socket = s->socket,
                                .tls_certificate = s->tls_certificate,
                                .tls_key = s->tls_key,
                                .tls_client_ca = s->tls_client_ca};
}

static int find_group(const char *member, const char *name, gid_t *out, struct err *err)
{
    struct lookup found;
    if (!*name)
        return 0;
    if (lookup_group(&found, name, err) < 0)
        return err->code == ERR_NOT_FOUND
                   ? err_set(err, ERR_INVALID, member, "%s: there is no group \"%s\"", member, name)
                   : err_prefix(err, "%s: the group \"%s\" cannot be looked up", member, name);
    *out = found.gid;
    return 0;
}

// Without a token no client may push.
static enum scope scope_of_setting(int choice)
{
    return choice ? (enum scope)(SCOPE_READ + choice - 1) : SCOPE_NONE;
}

static int groups_of(const struct http_settings *s, gid_t *run, gid_t *admin, struct err *err)
{
    return find_group("run_group", s->run_group, run, err) < 0
               ? -1
               : find_group("admin_group", s->admin_group, admin, err);
}

// Returns -1.
static int token_file_failed(struct err *err)
{
    snprintf(err->member, sizeof err->member, "token_file");
    return err_prefix(err, "%s", err->member);
}

int http_settings_check(const struct http_settings *s, const char *const *made, const int *passed,
                        int n_passed, struct err *err)
{
    struct http_config c = http_settings_config(s);
    gid_t run, admin;
    c.passed = passed;
    c.n_passed = n_passed;
    if (tokens_check(s->token_file, err) < 0)
        return token_file_failed(err);
    if (server_replaced(&c, s->insecure_plaintext, err) < 0)
        return err_name_member(err);
    if (dirs_check_folder("socket", c.socket, made, err) < 0)
        return -1;
    if (groups_of(s, &run, &admin, err) == 0 && server_check(&c, s->insecure_plaintext, err) == 0)
        return 0;
    return err_name_member(err);
}

int http_settings_doubt(const struct http_settings *s, struct err *why)
{
    const struct http_config c = http_settings_config(s);
    return server_doubt(&c, why);
}

int http_settings_access(const struct http_settings *s, struct access_rules *access,
                         struct err *err)
{
    *access = (struct access_rules){.anonymous = scope_of_setting(s->anonymous),
                                    .run_group = getegid(),
                                    .admin_group = (gid_t)-1,
                                    .socket_open = *s->run_group || *s->admin_group,
                                    .certificates = s->tls_client_scope,
                                    .insecure_plaintext = s->insecure_plaintext,
                                    .insecure_anonymous = s->insecure_anonymous};
    access->tokens = tokens_open(s->token_file, err);
    if (!access->tokens)
        return token_file_failed(err);
    return groups_of(s, &access->run_group, &access->admin_group, err);
}

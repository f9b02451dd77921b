// SPDX-License-Identifier: Apache-2.0
// Options, the environment and the file set the same struct through the same tables. What
// depends on the account, such as the state directory, is filled in at the end.
#include "daemon/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "http/server/config.h"

#define TEXT(member, ...)                                                                          \
    {                                                                                              \
        .name = #member, .kind = PARAM_TEXT, .offset = offsetof(struct config, member),            \
        .room = sizeof(((struct config *)NULL)->member), __VA_ARGS__                               \
    }

// An empty database has 0.3 MB and a run up to 27: less would delete every run at once.
enum { TEXT_MAX = 512 }; // of a setting: a line of the file
#define KEEP_BYTES_MIN ((uint64_t)16 << 20)

#define DEFAULT_FILE "/etc/numaprobe/numaprobed.conf"
static const char default_file[] = DEFAULT_FILE;
static const char *const scopes[] = {"none", "read", "run", "admin", NULL}; // as enum scope
static const char *const level_names[] = {"error", "warn", "info", "debug", NULL};
static const int levels[] = {LOG_LVL_ERROR, LOG_LVL_WARN, LOG_LVL_INFO, LOG_LVL_DEBUG};

// A default of "" is worked out from who we are, below. What is `live` follows the file when it is
// read again: daemon.c puts it into effect.
static const struct param params[] = {
    TEXT(listen, .def = "127.0.0.1:7780", .metavar = "LIST",
         .help =
             "Addresses to serve: ADDRESS:PORT, or https://ADDRESS:PORT for TLS. Port 0 picks a "
             "free port. Empty: none."),
    TEXT(socket, .def = "", .metavar = "PATH",
         .help =
             "Unix socket to serve, or \"none\". Default: numaprobed.sock in the run directory."),
    {.name = "connections",
     .kind = PARAM_INT,
     .offset = offsetof(struct config, connections),
     .min = CONNECTIONS_MIN,
     .max = CONNECTIONS_MAX,
     .def = "256",
     .help = "Maximum number of connections to each address and to the socket. One account gets a "
             "quarter of them, one remote address three quarters. Half of them can wait for runs. "
             "A connection needs up to 16 KiB of memory and a file descriptor. Thousands need a "
             "higher LimitNOFILE=."},
    TEXT(state_dir, .def = "", .metavar = "DIR",
         .help = "Directory of the database. Default: $STATE_DIRECTORY, /var/lib/numaprobe for "
                 "root, else ~/.local/state/numaprobe."),
    TEXT(run_dir, .def = "", .metavar = "DIR",
         .help =
             "Directory of temporary files of runs. Default: $RUNTIME_DIRECTORY, /run/numaprobe "
             "for root, else $XDG_RUNTIME_DIR/numaprobe."),
    TEXT(job_user, .def = "", .metavar = "USER",
         .help = "Account of the measuring processes when the daemon is root. Default: numaprobe, "
                 "else nobody. They run as root only if root is named here."),
    TEXT(host_names, .def = "", .metavar = "LIST",
         .help = "Host names accepted in requests, such as those of a proxy. localhost, 127.0.0.1, "
                 "[::1] and the listening address are always accepted."),
    {.name = "anonymous",
     .kind = PARAM_ENUM,
     .offset = offsetof(struct config, anonymous),
     .choices = scopes,
     .def = "read",
     .help =
         "Scope of local users without a token: none, read, run or admin. run and admin are for "
         "development."},
    TEXT(token_file, .def = "", .metavar = "FILE",
         .help = "File with the hashes of tokens (mode 0600). Default: tokens in the state "
                 "directory."),
    TEXT(tls_certificate, .def = "", .metavar = "FILE",
         .help = "Certificate chain (PEM) for https:// addresses."),
    TEXT(tls_key, .def = "", .metavar = "FILE",
         .help =
             "Private key (PEM) of the certificate. Other accounts must not have access to it."),
    TEXT(tls_client_ca, .def = "", .metavar = "FILE",
         .help = "CA bundle (PEM). TLS clients must present a certificate that it verifies."),
    TEXT(run_group, .def = "", .metavar = "GROUP",
         .help = "Members can start runs over the Unix socket. With this option or --admin-group "
                 "all local users can connect to the socket. Without both, only the daemon's own "
                 "group can connect and start runs."),
    TEXT(admin_group, .def = "", .metavar = "GROUP",
         .help = "Members have the scope admin over the Unix socket, like root and the daemon's "
                 "account."),
    {.name = "insecure_plaintext",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct config, insecure_plaintext),
     .def = "false",
     .help = "Serve addresses beyond loopback without TLS. Requests there need a token."},
    {.name = "insecure_anonymous",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct config, insecure_anonymous),
     .def = "false",
     .help = "Allow reading without a token beyond loopback too."},
    {.name = "keep_days",
     .live = true,
     .kind = PARAM_INT,
     .offset = offsetof(struct config, limits.keep_days),
     .min = 0,
     .max = 36500,
     .def = "0",
     .help =
         "Delete runs older than this when a run ends. 0: keep all. Days count while the node is "
         "up, independently of the wall clock. Labelled runs and runs in a baseline are never "
         "deleted."},
    {.name = "keep_runs",
     .live = true,
     .kind = PARAM_INT,
     .offset = offsetof(struct config, limits.keep_runs),
     .min = 0,
     .max = 100000000,
     .def = "0",
     .help = "Maximum number of runs. The oldest are deleted. 0: keep all."},
    {.name = "keep_bytes",
     .live = true,
     .kind = PARAM_BYTES,
     .offset = offsetof(struct config, limits.keep_bytes),
     .min = 0,
     .max = (double)((uint64_t)1 << 50),
     .def = "0",
     .help =
         "Maximum size of the database, such as 2G; at least 16M. The oldest runs are deleted. 0: "
         "keep all."},
    {.name = "log_level",
     .live = true,
     .kind = PARAM_ENUM,
     .offset = offsetof(struct config, log_level),
     .choices = level_names,
     .def = "info",
     .help = "Level of the log on standard error."},
};
const struct param_table config_table = {params, COUNT_OF(params)};

static const struct param actions[] = {
    {.name = "config",
     .kind = PARAM_TEXT,
     .def = DEFAULT_FILE,
     .metavar = "FILE",
     .help = "Configuration file."},
    {.name = "check_config",
     .kind = PARAM_BOOL,
     .def = "false",
     .help = "Check the configuration and exit; status 2 if it has an error."},
    {.name = "print_config",
     .kind = PARAM_BOOL,
     .def = "false",
     .help = "Print the configuration as a file, with defaults as comments, and exit."},
    {.name = "version", .kind = PARAM_BOOL, .def = "false", .help = "Print the version and exit."},
    {.name = "help", .kind = PARAM_BOOL, .def = "false", .help = "Print this text and exit."},
};
const struct param_table config_actions = {actions, COUNT_OF(actions)};

struct command_line {
    struct config *config;
    enum config_action *action;
};

static int config_other_option(void *ctx, const char *option, const char *value, struct err *err)
{
    struct command_line *line = ctx;
    if (strcmp(option, "config") == 0) {
        if (!value)
            return err_set(err, ERR_USAGE, "config", "write it as --config=FILE");
        snprintf(line->config->file, sizeof line->config->file, "%s", value);
        return 1;
    }
    static const char *const words[] = {[CONFIG_HELP] = "help",
                                        [CONFIG_VERSION] = "version",
                                        [CONFIG_ROUTES] = "routes",
                                        [CONFIG_PRINT] = "print-config",
                                        [CONFIG_CHECK] = "check-config"};
    for (int i = CONFIG_HELP; i <= CONFIG_CHECK; i++)
        if (strcmp(option, words[i]) == 0 && !value) {
            *line->action = (enum config_action)i;
            return 1;
        }
    return 0;
}

static int config_read_args(struct config *c, int argc, char **argv, enum config_action *action,
                            struct err *err)
{
    struct command_line line = {c, action};
    const struct param_target targets[] = {{&config_table, c}, {&policy_table, &c->policy}};
    struct param_args args = {.targets = targets,
                              .n_targets = COUNT_OF(targets),
                              .other = config_other_option,
                              .context = &line};
    int next = 1;
    if (param_parse_args(&args, argc, argv, &next, err) < 0)
        return -1;
    if (next < argc)
        return err_set(err, ERR_USAGE, "", "unexpected word \"%.60s\" (see --help)", argv[next]);
    return 0;
}

static int read_env_of(const struct param_table *t, void *object, struct err *err)
{
    for (int i = 0; i < t->n; i++) {
        char name[64];
        int n = snprintf(name, sizeof name, "NUMAPROBED_%s", t->params[i].name);
        for (int k = 0; k < n; k++)
            name[k] = (char)toupper((unsigned char)name[k]);
        const char *value = getenv(name);
        if (value && param_set_text(&t->params[i], object, value, err) < 0)
            return err_prefix(err, "%s", name);
    }
    return 0;
}

static int read_env(struct config *c, struct err *err)
{
    return read_env_of(&config_table, c, err) < 0 || read_env_of(&policy_table, &c->policy, err) < 0
               ? -1
               : 0;
}

static int daemon_config_set_from_file(void *ctx, const char *name, const char *value,
                                       struct err *err)
{
    struct config *c = ctx;
    void *object = c;
    const struct param *p = param_find_option(&config_table, name);
    if (!p) {
        p = param_find_option(&policy_table, name);
        object = &c->policy;
    }
    if (!p)
        return err_set(err, ERR_USAGE, name, "there is no setting \"%.40s\"", name);
    return param_set_text(p, object, value, err) < 0 ? err_prefix(err, "%s", name) : 0;
}

static int daemon_config_read_file(struct config *c, struct err *err)
{
    const char *path = *c->file ? c->file : default_file;
    struct stat st;
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT && !*c->file)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, "cannot read %s", path);
    if (!S_ISREG(st.st_mode) &&
        !S_ISCHR(st.st_mode)) // a pipe would hold up a reload; /dev/null may
        return err_set(err, ERR_USAGE, "config", "cannot read %s: it is not a file", path);
    CLEANUP_FILE FILE *f = fdopen(fd, "r");
    if (!f)
        return err_sys(err, "cannot read %s", path);
    fd = -1;
    int line;
    return param_read_file(f, daemon_config_set_from_file, c, &line, err) < 0
               ? err_prefix(err, "%s:%d", path, line)
               : 0;
}

// The first of: what systemd made for us, the system's place for root, the user's place.
static void default_dir(char *out, size_t room, const char *systemd, const char *system,
                        const char *xdg, const char *below_home)
{
    const char *given = getenv(systemd);
    const char *base = getenv(xdg);
    const char *home = getenv("HOME");
    if (*out)
        return;
    if (given && *given)
        snprintf(out, room, "%.*s", (int)strcspn(given, ":"), given);
    else if (geteuid() == 0)
        snprintf(out, room, "%s", system);
    else if (base && *base)
        snprintf(out, room, "%s/numaprobe", base);
    else if (below_home && home)
        snprintf(out, room, "%s/%s", home, below_home);
}

static int config_finish(struct config *c, struct err *err)
{
    default_dir(c->state_dir, sizeof c->state_dir, "STATE_DIRECTORY", "/var/lib/numaprobe",
                "XDG_STATE_HOME", ".local/state/numaprobe");
    if (!*c->state_dir)
        return err_set(err, ERR_USAGE, "state_dir", "--state-dir is needed: there is no HOME");
    default_dir(c->run_dir, sizeof c->run_dir, "RUNTIME_DIRECTORY", "/run/numaprobe",
                "XDG_RUNTIME_DIR", NULL);
    size_t room = sizeof c->run_dir;
    if (!*c->run_dir && snprintf(c->run_dir, room, "%s/run", c->state_dir) >= (int)room)
        return err_set(err, ERR_USAGE, "state_dir", "--state-dir is too long");
    room = sizeof c->socket;
    if (!*c->socket && snprintf(c->socket, room, "%s/numaprobed.sock", c->run_dir) >= (int)room)
        return err_set(err, ERR_USAGE, "socket",
                       "the run directory's path is too long for a "
                       "socket; name one by --socket");
    if (c->limits.keep_bytes && c->limits.keep_bytes < KEEP_BYTES_MIN)
        return err_set(err, ERR_USAGE, "keep_bytes", "keep_bytes must be 0 or at least 16M");
    room = sizeof c->token_file;
    if (!*c->token_file && snprintf(c->token_file, room, "%s/tokens", c->state_dir) >= (int)room)
        return err_set(err, ERR_USAGE, "state_dir", "--state-dir is too long");
    if (strcmp(c->socket, "none") == 0)
        c->socket[0] = '\0';
    return policy_finish(&c->policy, err) < 0 ? err_prefix(err, "%s", err->member) : 0;
}

int config_read(struct config *c, int argc, char **argv, enum config_action *action,
                struct err *err)
{
    struct config got = {0};
    *action = CONFIG_RUN;
    param_defaults(&config_table, &got);
    param_defaults(&policy_table, &got.policy);
    // Once for --config and errors of usage, then again over the file and the environment.
    if (config_read_args(&got, argc, argv, action, err) < 0)
        return -1;
    if (*action == CONFIG_RUN || *action >= CONFIG_PRINT) {
        struct config asked;
        char file[sizeof got.file];
        memcpy(file, got.file, sizeof file);
        param_defaults(&config_table, &got);
        param_defaults(&policy_table, &got.policy);
        memcpy(got.file, file, sizeof file);
        if (daemon_config_read_file(&got, err) < 0 || read_env(&got, err) < 0 ||
            config_read_args(&got, argc, argv, action, err) < 0)
            return -1;
        asked = got;
        if (config_finish(&got, err) < 0)
            return -1;
        if (*action != CONFIG_RUN)
            got = asked;
    }
    *c = got;
    return 0;
}

int config_reload(struct config *c, int argc, char **argv, config_pending *pending, void *ctx,
                  struct err *err)
{
    struct config now;
    enum config_action action;
    if (config_read(&now, argc, argv, &action, err) < 0)
        return -1;
    for (int i = 0; i < config_table.n; i++) {
        const struct param *p = &params[i];
        char before[TEXT_MAX], after[TEXT_MAX];
        param_get_text(p, c, before, sizeof before);
        param_get_text(p, &now, after, sizeof after);
        if (strcmp(before, after) == 0)
            continue;
        if (!p->live)
            pending(ctx, p->name, before, after);
        else if (param_set_text(p, c, after, err) < 0)
            return -1;
    }
    c->policy = now.policy; // every setting of it is live
    return 0;
}

void config_print(const struct config *c, FILE *out)
{
    struct config defaults = {0};
    param_defaults(&config_table, &defaults);
    param_defaults(&policy_table, &defaults.policy);
    fprintf(out, "# Configuration of numaprobed; numaprobed.conf(5) tells more. Lines are\n"
                 "# name = value. Options and NUMAPROBED_* variables win over this file.\n");
    param_print_file(&config_table, c, &defaults, out);
    param_print_file(&policy_table, &c->policy, &defaults.policy, out);
}

int config_log_level(const struct config *c)
{
    return levels[c->log_level];
}

void config_print_help(FILE *out)
{
    param_print_help(&config_table, out);
    fputs("\nadmission: conditions that block a run (docs/ADMISSION.md):\n", out);
    param_print_help(&policy_table, out);
    fputs("\nother options:\n", out);
    param_print_help(&config_actions, out);
}

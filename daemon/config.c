// SPDX-License-Identifier: Apache-2.0
// Options, the environment and the file set the same struct through the same tables. What
// depends on the account, such as the state directory, is filled in at the end.
#include "daemon/config.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/settings.h"
#include "core/os/dirs.h"

#define TEXT(member, ...)                                                                          \
    {                                                                                              \
        .name = #member, .kind = PARAM_TEXT, .offset = offsetof(struct config, member),            \
        .room = sizeof(((struct config *)NULL)->member), __VA_ARGS__                               \
    }

#define SERVED(member, ...)                                                                        \
    {                                                                                              \
        .name = #member, .kind = PARAM_TEXT, .offset = offsetof(struct config, http.member),       \
        .room = sizeof(((struct config *)NULL)->http.member), __VA_ARGS__                          \
    }

// An empty database has 0.3 MB and a run up to 27: less would delete every run at once.
enum { TEXT_MAX = 512 }; // of a setting: a line of the file
#define KEEP_BYTES_MIN ((uint64_t)16 << 20)

#define DEFAULT_FILE "/etc/numaprobe/numaprobed.conf"
static const char *const level_names[] = {"error", "warn", "info", "debug", NULL};
static const int levels[] = {LOG_LVL_ERROR, LOG_LVL_WARN, LOG_LVL_INFO, LOG_LVL_DEBUG};

// A default of "" is worked out from who we are, below. What is `live` follows the file when it is
// read again: daemon.c puts it into effect.
static const struct param params[] = {
    SERVED(listen, .def = "127.0.0.1:7780", .metavar = "LIST",
           .help =
               "Addresses to serve: ADDRESS:PORT, or https://ADDRESS:PORT for TLS. Port 0 picks a "
               "free port. Empty: none."),
    SERVED(socket, .def = "", .metavar = "PATH",
           .help =
               "Unix socket to serve, or \"none\". Default: numaprobed.sock in the run directory."),
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

// Those whose settings may be live come first (config_reload).
enum { TABLES = 3, RELOADED = 2 };
static void config_targets(struct config *c, struct param_target out[static TABLES])
{
    out[0] = (struct param_target){&config_table, c};
    out[1] = (struct param_target){&http_settings_table, &c->http};
    out[2] = (struct param_target){&policy_table, &c->policy};
}

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
    struct param_target targets[TABLES];
    config_targets(c, targets);
    struct param_args args = {
        .targets = targets, .n_targets = TABLES, .other = config_other_option, .context = &line};
    int next = 1;
    if (param_parse_args(&args, argc, argv, &next, err) < 0)
        return -1;
    if (next < argc)
        return err_set(err, ERR_USAGE, "", "unexpected word \"%.60s\" (see --help)", argv[next]);
    return 0;
}

static int config_finish(struct config *c, struct err *err)
{
    dirs_default(c->state_dir, sizeof c->state_dir, "STATE_DIRECTORY", "/var/lib/numaprobe",
                 "XDG_STATE_HOME", ".local/state/numaprobe");
    if (!*c->state_dir)
        return err_set(err, ERR_USAGE, "state_dir", "--state-dir is needed: there is no HOME");
    dirs_default(c->run_dir, sizeof c->run_dir, "RUNTIME_DIRECTORY", "/run/numaprobe",
                 "XDG_RUNTIME_DIR", NULL);
    size_t room = sizeof c->run_dir;
    if (!*c->run_dir && snprintf(c->run_dir, room, "%s/run", c->state_dir) >= (int)room)
        return err_set(err, ERR_USAGE, "state_dir", "--state-dir is too long");
    if (c->limits.keep_bytes && c->limits.keep_bytes < KEEP_BYTES_MIN)
        return err_set(err, ERR_USAGE, "keep_bytes", "keep_bytes must be 0 or at least 16M");
    if (http_settings_finish(&c->http, "numaprobed", c->state_dir, c->run_dir, err) < 0)
        return -1;
    return policy_finish(&c->policy, err) < 0 ? err_prefix(err, "%s", err->member) : 0;
}

static void config_defaults(struct config *c)
{
    struct param_target targets[TABLES];
    config_targets(c, targets);
    for (int i = 0; i < TABLES; i++)
        param_defaults(targets[i].table, targets[i].object);
}

// The file, the environment and the options, each over the one before.
static int config_read_all(struct config *c, int argc, char **argv, enum config_action *action,
                           struct err *err)
{
    struct param_target targets[TABLES];
    config_targets(c, targets);
    bool named = *c->file;
    if (settings_read_file(targets, TABLES, named ? c->file : DEFAULT_FILE, !named, err) < 0 ||
        settings_read_environment(targets, TABLES, "NUMAPROBED_", true, err) < 0)
        return -1;
    return config_read_args(c, argc, argv, action, err);
}

int config_read(struct config *c, int argc, char **argv, enum config_action *action,
                struct err *err)
{
    struct config got = {0};
    *action = CONFIG_RUN;
    config_defaults(&got);
    // Once for --config and errors of usage, then again over the file and the environment.
    if (config_read_args(&got, argc, argv, action, err) < 0)
        return -1;
    if (*action == CONFIG_RUN || *action >= CONFIG_PRINT) {
        struct config asked;
        char file[sizeof got.file];
        memcpy(file, got.file, sizeof file);
        config_defaults(&got);
        memcpy(got.file, file, sizeof file);
        if (config_read_all(&got, argc, argv, action, err) < 0)
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

static int config_follow(const struct param *p, void *object, const void *now,
                         config_pending *pending, void *ctx, struct err *err)
{
    char before[TEXT_MAX], after[TEXT_MAX];
    param_get_text(p, object, before, sizeof before);
    param_get_text(p, now, after, sizeof after);
    if (strcmp(before, after) == 0)
        return 0;
    if (p->live)
        return param_set_text(p, object, after, err);
    pending(ctx, p->name, before, after);
    return 0;
}

int config_reload(struct config *c, int argc, char **argv, config_pending *pending, void *ctx,
                  struct err *err)
{
    struct config now;
    enum config_action action;
    if (config_read(&now, argc, argv, &action, err) < 0)
        return -1;
    struct param_target old[TABLES], new[TABLES];
    config_targets(c, old);
    config_targets(&now, new);
    for (int t = 0; t < RELOADED; t++)
        for (int i = 0; i < old[t].table->n; i++)
            if (config_follow(&old[t].table->params[i], old[t].object, new[t].object, pending, ctx,
                              err) < 0)
                return -1;
    c->policy = now.policy; // every setting of it is live
    return 0;
}

void config_print(const struct config *c, FILE *out)
{
    struct config defaults = {0};
    config_defaults(&defaults);
    fprintf(out, "# Configuration of numaprobed; numaprobed.conf(5) tells more. Lines are\n"
                 "# name = value. Options and NUMAPROBED_* variables win over this file.\n");
    param_print_file(&config_table, c, &defaults, out);
    param_print_file(&http_settings_table, &c->http, &defaults.http, out);
    param_print_file(&policy_table, &c->policy, &defaults.policy, out);
}

int config_log_level(const struct config *c)
{
    return levels[c->log_level];
}

void config_print_help(FILE *out)
{
    param_print_help(&config_table, out);
    fputs("\nconnections and access:\n", out);
    param_print_help(&http_settings_table, out);
    fputs("\nadmission: conditions that block a run (docs/ADMISSION.md):\n", out);
    param_print_help(&policy_table, out);
    fputs("\nother options:\n", out);
    param_print_help(&config_actions, out);
}

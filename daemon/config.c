// SPDX-License-Identifier: Apache-2.0
// Options, the environment and the file set the same struct through the same tables. What
// depends on the account, such as the state directory, is filled in at the end.
#include "daemon/config.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/settings.h"
#include "core/os/dirs.h"
#include "core/os/nss.h"

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
#define KEEP_BYTES_MIN ((uint64_t)16 << 20)

#define DEFAULT_FILE "/etc/numaprobe/numaprobed.conf"
// StateDirectory= and RuntimeDirectory= of the unit.
#define UNIT_STATE_DIR "/var/lib/numaprobe"
#define UNIT_RUN_DIR "/run/numaprobe"

// A default of "" is worked out from who we are, below. What is `live` follows the file when it is
// read again: daemon.c puts it into effect.
static const struct param params[] = {
    SERVED(listen, .def = "127.0.0.1:7780", .metavar = "LIST",
           .help =
               "Addresses to serve: ADDRESS:PORT, or https://ADDRESS:PORT for TLS. Port 0 picks a "
               "free port. [::] serves IPv4 too, unless the list has an IPv4 address with its "
               "port. Empty: none."),
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
     .choices = log_level_names,
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
};
const struct param_table config_actions = {actions, COUNT_OF(actions)};

enum { TABLES = 3 };
static void config_targets(struct config *c, struct param_target out[static TABLES])
{
    out[0] = (struct param_target){&config_table, c};
    out[1] = (struct param_target){&http_settings_table, &c->http};
    out[2] = (struct param_target){&policy_table, &c->policy};
}

static int config_finish(struct config *c, struct err *err)
{
    if (dirs_default(c->state_dir, sizeof c->state_dir, "STATE_DIRECTORY", UNIT_STATE_DIR,
                     "XDG_STATE_HOME", ".local/state/numaprobe", err) < 0)
        return -1;
    if (!*c->state_dir)
        return err_set(err, ERR_USAGE, "state_dir", "--state-dir is needed: there is no HOME");
    if (dirs_default(c->run_dir, sizeof c->run_dir, "RUNTIME_DIRECTORY", UNIT_RUN_DIR,
                     "XDG_RUNTIME_DIR", NULL, err) < 0)
        return -1;
    size_t room = sizeof c->run_dir;
    if (!*c->run_dir && snprintf(c->run_dir, room, "%s/run", c->state_dir) >= (int)room)
        return err_set(err, ERR_USAGE, "state_dir", "--state-dir is too long");
    if (dirs_check("state_dir", c->state_dir, err) < 0 ||
        dirs_check("run_dir", c->run_dir, err) < 0)
        return -1;
    if (c->limits.keep_bytes && c->limits.keep_bytes < KEEP_BYTES_MIN)
        return err_set(err, ERR_USAGE, "keep_bytes", "keep_bytes must be 0 or at least 16M");
    if (http_settings_finish(&c->http, "numaprobed", c->state_dir, c->run_dir, err) < 0)
        return -1;
    return policy_finish(&c->policy, err) < 0 ? err_prefix(err, "%s", err->member) : 0;
}

int config_check(const struct config *c, const int *passed, int n_passed, struct err *err)
{
    struct lookup found;
    if (*c->job_user && lookup_user(&found, c->job_user, err) < 0 && err->code == ERR_NOT_FOUND)
        return err_set(err, ERR_USAGE, "job_user", "job_user: there is no account \"%s\"",
                       c->job_user);
    const char *const made[] = {c->state_dir, c->run_dir, UNIT_STATE_DIR, UNIT_RUN_DIR, NULL};
    return http_settings_check(&c->http, made, passed, n_passed, err);
}

static struct settings_program config_program(const struct param_target targets[static TABLES])
{
    return (struct settings_program){.name = "numaprobed",
                                     .file = DEFAULT_FILE,
                                     .prefix = "NUMAPROBED_",
                                     .targets = targets,
                                     .n = TABLES};
}

int config_read(struct config *c, int argc, char **argv, enum settings_action *action,
                struct err *err)
{
    struct config got = {0};
    struct param_target targets[TABLES];
    config_targets(&got, targets);
    const struct settings_program program = config_program(targets);
    struct err why;
    if (settings_read(&program, argc, argv, action, err) < 0)
        return -1;
    struct config requested = got;
    if ((settings_are_used(*action) && config_finish(&got, err) < 0) ||
        (*action == SETTINGS_CHECK && config_check(&got, NULL, 0, err) < 0))
        return settings_at_fault(&program, argc, argv, err);
    if (*action == SETTINGS_CHECK && http_settings_doubt(&got.http, &why) < 0)
        settings_warn(&program, argc, argv, &why);
    *c = *action == SETTINGS_RUN ? got : requested;
    return 0;
}

int config_reload(struct config *c, int argc, char **argv, settings_changed *changed, void *ctx,
                  struct err *err)
{
    struct config now;
    enum settings_action action;
    if (config_read(&now, argc, argv, &action, err) < 0)
        return -1;
    struct param_target old[TABLES], new[TABLES];
    config_targets(c, old);
    config_targets(&now, new);
    settings_compare(old, new, TABLES, changed, ctx);
    if (settings_take_live(old, new, TABLES, err) < 0)
        return -1;
    c->policy = now.policy; // every setting of it is live
    return 0;
}

void config_compare(struct config *before, struct config *after, settings_changed *changed,
                    void *ctx)
{
    struct param_target old[TABLES], new[TABLES];
    config_targets(before, old);
    config_targets(after, new);
    settings_compare(old, new, TABLES, changed, ctx);
}

void config_at_fault(int argc, char **argv, struct err *err)
{
    static struct config none;
    struct param_target targets[TABLES];
    config_targets(&none, targets);
    const struct settings_program program = config_program(targets);
    settings_at_fault(&program, argc, argv, err);
}

void config_print(const struct config *c, FILE *out)
{
    struct config defaults = {0};
    struct param_target targets[TABLES];
    config_targets(&defaults, targets);
    settings_defaults(targets, TABLES);
    fprintf(out, "# Configuration of numaprobed; numaprobed.conf(5) tells more. Lines are\n"
                 "# name = value. Options and NUMAPROBED_* variables win over this file.\n");
    param_print_file(&config_table, c, &defaults, out);
    param_print_file(&http_settings_table, &c->http, &defaults.http, out);
    param_print_file(&policy_table, &c->policy, &defaults.policy, out);
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
    param_print_help(&settings_actions, out);
}

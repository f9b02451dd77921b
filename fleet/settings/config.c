// SPDX-License-Identifier: Apache-2.0
// Settings as those of the daemon. What depends on the account, such as the state directory, is
// filled in at the end.
#include "fleet/settings/config.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "core/os/dirs.h"
#include "http/server/tls.h"
#include "nodes/lines.h"

#define TEXT(member, ...)                                                                          \
    {                                                                                              \
        .name = #member, .kind = PARAM_TEXT, .offset = offsetof(struct fleetd_config, member),     \
        .room = sizeof(((struct fleetd_config *)NULL)->member), __VA_ARGS__                        \
    }
#define SERVED(member, ...)                                                                        \
    {                                                                                              \
        .name = #member, .kind = PARAM_TEXT,                                                       \
        .offset = offsetof(struct fleetd_config, http.member),                                     \
        .room = sizeof(((struct fleetd_config *)NULL)->http.member), __VA_ARGS__                   \
    }

#define FLEETD_FILE "/etc/numaprobe/numaprobe-fleetd.conf"
// StateDirectory= and RuntimeDirectory= of the unit.
#define UNIT_STATE_DIR "/var/lib/numaprobe-fleet"
#define UNIT_RUN_DIR "/run/numaprobe-fleet"

static const char *const archive_names[FLEET_ARCHIVES + 1] = {
    [FLEET_ARCHIVE_NONE] = "none",
    [FLEET_ARCHIVE_KEPT] = "kept",
    [FLEET_ARCHIVE_ALL] = "all",
};

static const char *const drain_names[FLEETD_DRAINS + 1] = {
    [FLEETD_DRAIN_SUGGEST] = "suggest",
    [FLEETD_DRAIN_APPLY] = "apply",
};

// ---- Whether a setting can be right at all ------------------------------------------------------

static int address_setting(const char *url, struct err *err)
{
    const char *fault = address_fault(url);
    if (str_url_has_user(url))
        return err_set(err, ERR_USAGE, "",
                       "must have no user or password: it is shown to every reader. Use "
                       "node_token_file or node_certificate");
    if (!fault && !strstr(url, "%h"))
        return err_set(err, ERR_USAGE, "",
                       "must have %%h where the node's name belongs: https://%%h:7443");
    return fault ? err_set(err, ERR_USAGE, "", "%s, as in http://%%h:7780", fault) : 0;
}

static int nodes_setting(const char *set, struct err *err)
{
    return source_check(SOURCE_NODES, set, err);
}

static int hostfile_setting(const char *path, struct err *err)
{
    return source_check(SOURCE_FILE, path, err);
}

static int slurm_setting(const char *partition, struct err *err)
{
    return source_check(SOURCE_SLURM, partition, err);
}

static const char announce[] = "announce"; // the nodes of the own token file

static bool is_announce(const char *text, size_t n)
{
    return n == sizeof announce - 1 && strncmp(text, announce, n) == 0;
}

static int source_given_check(const char *source, struct err *err)
{
    enum source_kind kind;
    if (strcmp(source, announce) == 0)
        return 0;
    for (const char *c = source; *c; c++)
        if (iscntrl((unsigned char)*c))
            return err_set(err, ERR_USAGE, "source",
                           "must have no control character, such as a tab: write each source in "
                           "a line of its own, or separate them by blanks");
    if (strncmp(source, announce, sizeof announce - 1) == 0 && source[sizeof announce - 1] == ':')
        return err_set(err, ERR_USAGE, "source",
                       "announce takes no value: write announce. Its nodes are those of the "
                       "collector's tokens of scope push");
    return source_split(source, &kind, err) ? 0 : -1;
}

static int source_setting(const char *list, struct err *err)
{
    char source[FLEETD_SOURCE_MAX];
    for (size_t n; *(list += strspn(list, " ")); list += n) {
        n = strcspn(list, " ");
        snprintf(source, sizeof source, "%.*s", (int)n, list);
        if (source_given_check(source, err) < 0)
            return -1;
    }
    return 0;
}

// ---- Tables -------------------------------------------------------------------------------------

static const struct param params[] = {
    SERVED(listen, .def = "127.0.0.1:7790", .metavar = "LIST",
           .help =
               "Addresses to serve: ADDRESS:PORT, or https://ADDRESS:PORT for TLS. Port 0 picks a "
               "free port. [::] serves IPv4 too, unless the list has an IPv4 address with its "
               "port. Empty: none."),
    SERVED(socket, .def = "", .metavar = "PATH",
           .help = "Unix socket to serve, or \"none\". Default: numaprobe-fleetd.sock in the run "
                   "directory."),
    TEXT(state_dir, .def = "", .metavar = "DIR",
         .help = "Directory of the history. Default: $STATE_DIRECTORY, /var/lib/numaprobe-fleet "
                 "for root, else ~/.local/state/numaprobe-fleet."),
    TEXT(run_dir, .def = "", .metavar = "DIR",
         .help = "Directory of the Unix socket. Default: $RUNTIME_DIRECTORY, /run/numaprobe-fleet "
                 "for root, else $XDG_RUNTIME_DIR/numaprobe-fleet."),
    TEXT(store, .def = "", .metavar = "WHERE",
         .help = "The history: a file, or a database of PostgreSQL: postgresql://HOST/NAME (or "
                 "postgres://). "
                 "Default: fleet.db in the state directory."),
    TEXT(source, .joins = ' ', .check = source_setting, .def = "", .metavar = "SOURCE",
         .help =
             "Where the nodes are listed: nodes:SET, file:PATH, slurm:PARTITION, srv:NAME, "
             "http_sd:URL, file_sd:PATH, announce (nodes that push) or collector:URL (the nodes of "
             "another collector, whose history is copied). May be repeated; the nodes "
             "of all sources are collected from."),
    TEXT(nodes, .joins = ',', .check = nodes_setting, .def = "", .metavar = "SET",
         .help = "The nodes: n[001-100,120], @group or ^file. May be repeated. Short for "
                 "--source=nodes:SET."),
    TEXT(hostfile, .check = hostfile_setting, .def = "", .metavar = "FILE",
         .help = "The nodes: a set per line of this file. Short for --source=file:FILE."),
    TEXT(from_slurm, .check = slurm_setting, .def = "", .metavar = "PARTITION", .implied = "*",
         .help = "The nodes: those that sinfo lists, of this partition or of all. Short for "
                 "--source=slurm:PARTITION."),
    TEXT(groups_file, .def = "/etc/numaprobe/groups", .metavar = "FILE",
         .help = "Groups of nodes: lines NAME: SET."),
    TEXT(group_command, .check = source_command_check, .def = "", .metavar = "COMMAND",
         .help =
             "Command for groups that are not in the file. Each %s is the group: nodeset -e @%s."),
    TEXT(url, .check = address_setting, .def = "http://%h:7780", .metavar = "URL",
         .help = "Address of each node's daemon; %h is the node's name or address."),
    TEXT(hosts_file, .def = "", .metavar = "FILE",
         .help = "Addresses of nodes, in the format of /etc/hosts. Other names are looked up."),
    TEXT(node_token_file, .def = "", .metavar = "FILE",
         .help = "File with the token for the nodes. Needs https:// in --url."),
    TEXT(node_ca, .def = "", .metavar = "FILE",
         .help = "CA bundle (PEM) that verifies the nodes. Default: the system's."),
    TEXT(node_certificate, .def = "", .metavar = "FILE",
         .help = "Certificate (PEM) that the collector presents to nodes."),
    TEXT(node_key, .def = "", .metavar = "FILE", .help = "Private key (PEM) of that certificate."),
    {.name = "every",
     .kind = PARAM_INT,
     .offset = offsetof(struct fleetd_config, every_s),
     .min = 1,
     .max = 86400,
     .def = "300",
     .unit = "s",
     .help = "Time between two requests to a node for its new runs. A node that fails is "
             "contacted less often, at least once an hour."},
    {.name = "push_every",
     .kind = PARAM_INT,
     .offset = offsetof(struct fleetd_config, push_every_s),
     .min = 1,
     .max = 604800,
     .def = "3600",
     .unit = "s",
     .help = "Time in which a node that pushes (--source=announce) must have pushed. After three "
             "times as long without a page it is down."},
    {.name = "at_once",
     .kind = PARAM_INT,
     .offset = offsetof(struct fleetd_config, at_once),
     .min = 1,
     .max = 1024,
     .def = "64",
     .help = "Maximum number of nodes that are contacted at the same time. A page of a node takes "
             "at most 4 MiB."},
    {.name = "node_timeout",
     .kind = PARAM_INT,
     .offset = offsetof(struct fleetd_config, node_timeout_s),
     .min = 1,
     .max = 600,
     .def = "20",
     .unit = "s",
     .help = "Time limit of one request to a node, with its connection. A node that sends nothing "
             "for a quarter of it, and at least for 5 s, has failed too."},
    {.name = "keep_days",
     .kind = PARAM_INT,
     .offset = offsetof(struct fleetd_config, keep_days),
     .min = 0,
     .max = 36500,
     .def = "0",
     .help = "Delete months of runs that are older than this, at most two months a day. 0: keep "
             "all."},
    {.name = "archive",
     .kind = PARAM_ENUM,
     .offset = offsetof(struct fleetd_config, archive),
     .choices = archive_names,
     .def = "kept",
     .help =
         "Whole runs that are fetched from their nodes and kept: none, all, or kept: those with "
         "a label or in a baseline, the first and the last of each set-up of a node that "
         "succeeded, and those that a sure finding cites."},
    {.name = "archive_keep_days",
     .kind = PARAM_INT,
     .offset = offsetof(struct fleetd_config, archive_keep_days),
     .min = 0,
     .max = 36500,
     .def = "0",
     .help = "Delete whole runs that were stored longer ago than this, at most those of two months "
             "a day. 0: keep all."},
    {.name = "slurm_submit",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct fleetd_config, slurm_submit),
     .def = "false",
     .help = "Submit the jobs of campaigns through Slurm with sbatch. Default: the collector only "
             "writes their scripts."},
    {.name = "drain",
     .kind = PARAM_ENUM,
     .offset = offsetof(struct fleetd_config, drain),
     .choices = drain_names,
     .def = "suggest",
     .help = "What becomes of nodes that are slow for certain: suggest names them, apply drains "
             "them with scontrol. Needs a source slurm:."},
    {.name = "log_level",
     .kind = PARAM_ENUM,
     .offset = offsetof(struct fleetd_config, log_level),
     .choices = log_level_names,
     .def = "info",
     .help = "Level of the log on standard error."},
};
_Static_assert(sizeof((struct fleetd_config){0}.nodes) + 100 <= PARAM_LINE_MAX,
               "the longest setting fits a line");
const struct param_table fleetd_table = {params, COUNT_OF(params)};

static const struct param actions[] = {
    {.name = "config",
     .kind = PARAM_TEXT,
     .def = FLEETD_FILE,
     .metavar = "FILE",
     .help = "Configuration file."},
    {.name = "print_nodes",
     .kind = PARAM_BOOL,
     .def = "false",
     .help = "Print the nodes that the sources name, one per line, and exit."},
    {.name = "move_to",
     .kind = PARAM_TEXT,
     .def = "",
     .metavar = "URI",
     .help = "Copy the history from the file of --store to an empty database, postgresql://…, "
             "compare both, and exit. Repeated after an interruption, it continues."},
};
const struct param_table fleetd_actions = {actions, COUNT_OF(actions)};

enum { TABLES = 2 };
static void fleetd_targets(struct fleetd_config *c, struct param_target out[static TABLES])
{
    out[0] = (struct param_target){&fleetd_table, c};
    out[1] = (struct param_target){&http_settings_table, &c->http};
}

// What can be checked without a network.
static int check_reach(const struct fleetd_config *c, struct err *err)
{
    bool tls = str_starts(c->url, "https://");
    if (*c->node_token_file && !tls)
        return err_set(err, ERR_USAGE, "node_token_file",
                       "node_token_file needs an url of https://: a token must not travel in "
                       "clear");
    if (!*c->node_certificate != !*c->node_key)
        return err_set(err, ERR_USAGE, *c->node_key ? "node_key" : "node_certificate",
                       "node_certificate and node_key need each other");
    return 0;
}

static int source_add(char out[static FLEETD_SOURCES_MAX][FLEETD_SOURCE_MAX], int n,
                      const char *kind, const char *text, size_t len, struct err *err)
{
    enum source_kind found;
    if (n == FLEETD_SOURCES_MAX)
        return err_set(err, ERR_USAGE, "source", "there are more than %d sources",
                       FLEETD_SOURCES_MAX);
    snprintf(out[n], sizeof out[n], "%s%.*s", kind, (int)len, text);
    return source_split(out[n], &found, err) ? n + 1 : -1;
}

static int source_add_given(const struct fleetd_config *c,
                            char out[static FLEETD_SOURCES_MAX][FLEETD_SOURCE_MAX], int n,
                            const char *text, size_t len, struct err *err)
{
    if (!is_announce(text, len))
        return source_add(out, n, "", text, len, err);
    const char *file = *c->http.token_file ? c->http.token_file : "tokens";
    return source_add(out, n, "announce:", file, strlen(file), err);
}

int fleetd_sources(const struct fleetd_config *c,
                   char out[static FLEETD_SOURCES_MAX][FLEETD_SOURCE_MAX], struct err *err)
{
    const struct {
        const char *kind, *text;
    } short_forms[] = {{"nodes:", c->nodes}, {"file:", c->hostfile}, {"slurm:", c->from_slurm}};
    int n = 0;
    for (size_t i = 0; n >= 0 && i < COUNT_OF(short_forms); i++)
        if (*short_forms[i].text)
            n = source_add(out, n, short_forms[i].kind, short_forms[i].text,
                           strlen(short_forms[i].text), err);
    for (const char *at = c->source; n >= 0 && *(at += strspn(at, " ")); at += strcspn(at, " "))
        n = source_add_given(c, out, n, at, strcspn(at, " "), err);
    return n;
}

const char *fleetd_source_shown(const char *source, char out[static FLEETD_SOURCE_MAX])
{
    bool url = str_starts(source, "http_sd:");
    size_t n = url ? strcspn(source, "?#") : strlen(source);
    snprintf(out, FLEETD_SOURCE_MAX, "%.*s%s", (int)n, source, source[n] ? "?..." : "");
    return out;
}

// Names the setting at fault. Returns -1.
static int setting_failed(const char *name, struct err *err)
{
    if (!err)
        return -1;
    if (name != err->member)
        snprintf(err->member, sizeof err->member, "%s", name);
    return str_starts(err->text, name) ? -1 : err_prefix(err, "%s", name);
}

static int check_sources(const struct fleetd_config *c, struct err *err)
{
    char list[FLEETD_SOURCES_MAX][FLEETD_SOURCE_MAX];
    int n = fleetd_sources(c, list, err);
    bool slurm = false;
    if (list_check(c->groups_file, err) < 0)
        return setting_failed("groups_file", err);
    for (int i = 0; i < n; i++) {
        enum source_kind kind;
        slurm |= source_split(list[i], &kind, err) && kind == SOURCE_SLURM;
    }
    if (n >= 0 && c->drain == FLEETD_DRAIN_APPLY && !slurm)
        return err_set(err, ERR_USAGE, "drain",
                       "drain = apply needs Slurm as a source of nodes, which says what others "
                       "have drained: source = slurm:");
    return n < 0 ? -1 : 0;
}

static int fleetd_finish(struct fleetd_config *c, struct err *err)
{
    if (dirs_default(c->state_dir, sizeof c->state_dir, "STATE_DIRECTORY", UNIT_STATE_DIR,
                     "XDG_STATE_HOME", ".local/state/numaprobe-fleet", err) < 0)
        return -1;
    if (!*c->state_dir)
        return err_set(err, ERR_USAGE, "state_dir", "--state-dir is needed: there is no HOME");
    if (dirs_default(c->run_dir, sizeof c->run_dir, "RUNTIME_DIRECTORY", UNIT_RUN_DIR,
                     "XDG_RUNTIME_DIR", NULL, err) < 0)
        return -1;
    if (!*c->run_dir)
        snprintf(c->run_dir, sizeof c->run_dir, "%s", c->state_dir);
    if (dirs_check("state_dir", c->state_dir, err) < 0 ||
        dirs_check("run_dir", c->run_dir, err) < 0)
        return -1;
    if (!*c->store)
        snprintf(c->store, sizeof c->store, "%s/fleet.db", c->state_dir);
    if (!strstr(c->store, "://") && dirs_check_absolute("store", c->store, err) < 0)
        return -1;
    if (check_reach(c, err) < 0 || check_sources(c, err) < 0)
        return -1;
    return http_settings_finish(&c->http, "numaprobe-fleetd", c->state_dir, c->run_dir, err);
}

struct addresses *fleetd_addresses(const struct fleetd_config *c, struct err *err)
{
    struct addresses *a =
        list_check(c->hosts_file, err) < 0 ? NULL : addresses_read(c->hosts_file, err);
    if (!a)
        setting_failed("hosts_file", err);
    return a;
}

int fleetd_node_token(const struct fleetd_config *c, char token[static FLEETD_TOKEN_ROOM],
                      struct err *err)
{
    const char *path = c->node_token_file;
    struct stat st;
    *token = '\0';
    if (!*path)
        return 0;
    if (list_check(path, err) < 0)
        return setting_failed("node_token_file", err);
    if (stat(path, &st) < 0 || file_read_text(path, token, FLEETD_TOKEN_ROOM) < 0) {
        err_sys(err, "cannot read %.150s", path);
        return setting_failed("node_token_file", err);
    }
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return err_set(err, ERR_USAGE, "node_token_file",
                       "node_token_file: others may read %.150s; its mode must be 0600", path);
    for (const char *at = token; at == token || *at; at++)
        if (*at <= ' ' || *at > '~')
            return err_set(err, ERR_USAGE, "node_token_file",
                           "node_token_file: %.150s must have one token, and nothing else", path);
    return 0;
}

int fleetd_node_tls(const struct fleetd_config *c, bool now, struct err *err)
{
    static const struct tls_names names = {"node_certificate", "node_key", "node_ca"};
    if (tls_client_check(&names, c->node_certificate, c->node_key, c->node_ca, now, err) == 0)
        return 0;
    if (err)
        err->code = ERR_USAGE;
    return setting_failed(err ? err->member : "", err);
}

// The directories that a start or the unit of systemd makes, up to NULL.
struct made_dirs {
    const char *list[5];
};

static struct made_dirs dirs_made(const struct fleetd_config *c)
{
    return (struct made_dirs){{c->state_dir, c->run_dir, UNIT_STATE_DIR, UNIT_RUN_DIR, NULL}};
}

int fleetd_check_file(const struct fleetd_config *c, struct err *err)
{
    const struct made_dirs made = dirs_made(c);
    struct stat st;
    if (strstr(c->store, "://"))
        return 0;
    if (stat(c->store, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "store", "store: %s is not a file", c->store);
    return dirs_check_folder("store", c->store, made.list, err);
}

int fleetd_check_start(const struct fleetd_config *c, const int *passed, int n_passed,
                       struct err *err)
{
    char token[FLEETD_TOKEN_ROOM];
    const struct made_dirs made = dirs_made(c);
    struct addresses *known = fleetd_addresses(c, err);
    addresses_free(known);
    if (!known || fleetd_node_token(c, token, err) < 0 || fleetd_node_tls(c, false, err) < 0)
        return -1;
    return http_settings_check(&c->http, made.list, passed, n_passed, err);
}

static int fleetd_check(const struct fleetd_config *c, struct err *err)
{
    return fleetd_check_file(c, err) < 0 ? -1 : fleetd_check_start(c, NULL, 0, err);
}

static int fleetd_check_store(const struct fleetd_config *c, fleetd_store_check *check,
                              struct err *err)
{
    return check(c->store, err) < 0 ? setting_failed("store", err) : 0;
}

static struct settings_program fleetd_program(struct fleetd_config *c,
                                              struct param_target targets[static TABLES])
{
    fleetd_targets(c, targets);
    return (struct settings_program){.name = "numaprobe-fleetd",
                                     .file = FLEETD_FILE,
                                     .prefix = "NUMAPROBE_FLEETD_",
                                     .own = "print-nodes",
                                     .own_with = "move-to",
                                     .own_text = &c->move_to,
                                     .targets = targets,
                                     .n = TABLES};
}

int fleetd_config_read(struct fleetd_config *c, int argc, char **argv, fleetd_store_check *store,
                       enum settings_action *action, struct err *err)
{
    struct param_target targets[TABLES];
    *c = (struct fleetd_config){0};
    const struct settings_program program = fleetd_program(c, targets);
    struct err why;
    if (settings_read(&program, argc, argv, action, err) < 0)
        return -1;
    struct fleetd_config finished = *c;
    if ((settings_are_used(*action) &&
         (fleetd_finish(&finished, err) < 0 || fleetd_check_store(&finished, store, err) < 0)) ||
        (*action == SETTINGS_CHECK && fleetd_check(&finished, err) < 0))
        return settings_at_fault(&program, argc, argv, err);
    if (*action == SETTINGS_CHECK && fleetd_node_tls(&finished, true, &why) < 0)
        settings_warn(&program, argc, argv, &why);
    if (*action == SETTINGS_CHECK && http_settings_doubt(&finished.http, &why) < 0)
        settings_warn(&program, argc, argv, &why);
    if (*action != SETTINGS_PRINT)
        *c = finished;
    return 0;
}

int fleetd_config_compare(const struct fleetd_config *c, int argc, char **argv,
                          fleetd_store_check *store, settings_changed *pending, void *ctx,
                          struct err *err)
{
    struct fleetd_config in_use = *c, now;
    struct param_target old[TABLES], new[TABLES];
    enum settings_action action;
    if (fleetd_config_read(&now, argc, argv, store, &action, err) < 0)
        return -1;
    fleetd_targets(&in_use, old);
    fleetd_targets(&now, new);
    settings_compare(old, new, TABLES, pending, ctx);
    return 0;
}

void fleetd_at_fault(int argc, char **argv, struct err *err)
{
    struct fleetd_config none = {0};
    struct param_target targets[TABLES];
    const struct settings_program program = fleetd_program(&none, targets);
    settings_at_fault(&program, argc, argv, err);
}

void fleetd_config_print(const struct fleetd_config *c, FILE *out)
{
    struct fleetd_config defaults = {0};
    struct param_target targets[TABLES];
    fleetd_targets(&defaults, targets);
    settings_defaults(targets, TABLES);
    fputs("# Configuration of numaprobe-fleetd. Lines are name = value. Options and\n"
          "# NUMAPROBE_FLEETD_* variables win over this file.\n",
          out);
    param_print_file(&fleetd_table, c, &defaults, out);
    param_print_file(&http_settings_table, &c->http, &defaults.http, out);
}

void fleetd_config_help(FILE *out)
{
    param_print_help(&fleetd_table, out);
    fputs("\nconnections and access:\n", out);
    param_print_help(&http_settings_table, out);
    fputs("\nother options:\n", out);
    param_print_help(&fleetd_actions, out);
    param_print_help(&settings_actions, out);
}

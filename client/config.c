// SPDX-License-Identifier: Apache-2.0
// Four sources are read in the order of their precedence, the weakest first. The daemon's
// address is found last, because it may follow from any of them.
#include "client/config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/settings.h"
#include "base/str.h"
#include "client/socket.h"

#define USUAL_PORT "http://127.0.0.1:7780"

static const char *const outputs[] = {"table", "json", "ndjson", "csv", "nfd", "slurm", NULL};
static const char *const colours[] = {"auto", "always", "never", NULL};

static const struct param cli_params[] = {
    {.name = "url",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct cli, url),
     .room = sizeof((struct cli *)0)->url,
     .def = "",
     .help =
         "Address of the daemon: http://HOST:PORT, https://HOST:PORT or unix:/PATH. Default: the "
         "system's Unix socket if it is accessible, else http://127.0.0.1:7780. A token is sent "
         "over TCP only when this option names the address."},
    {.name = "token_file",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct cli, token_file),
     .room = sizeof((struct cli *)0)->token_file,
     .def = "",
     .metavar = "FILE",
     .help = "File with a token (mode 0600). NUMAPROBE_TOKEN can hold the token itself."},
    {.name = "cacert",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct cli, cacert),
     .room = sizeof((struct cli *)0)->cacert,
     .def = "",
     .metavar = "FILE",
     .help = "CA bundle (PEM) used to verify the daemon. Default: the system's."},
    {.name = "cert",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct cli, cert),
     .room = sizeof((struct cli *)0)->cert,
     .def = "",
     .metavar = "FILE",
     .help = "Client certificate (PEM) for a daemon that requires one."},
    {.name = "key",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct cli, key),
     .room = sizeof((struct cli *)0)->key,
     .def = "",
     .metavar = "FILE",
     .help = "Private key (PEM) of the client certificate."},
    {.name = "output",
     .kind = PARAM_ENUM,
     .offset = offsetof(struct cli, output),
     .choices = outputs,
     .letter = 'o',
     .def = "table",
     .help = "Output format. Short form: -o. nfd and slurm: labels of a node, of check only."},
    {.name = "colour",
     .alias = "color",
     .kind = PARAM_ENUM,
     .offset = offsetof(struct cli, colour),
     .choices = colours,
     .def = "auto",
     .help = "Use colour. auto: on a terminal, unless NO_COLOR is set or TERM is dumb. "
             "--color is accepted too."},
    {.name = "http_timeout",
     .kind = PARAM_INT,
     .offset = offsetof(struct cli, timeout_s),
     .min = 1,
     .max = 3600,
     .def = "80",
     .unit = "s",
     .help = "Time limit of one HTTP request."},
};
const struct param_table cli_options = {cli_params, COUNT_OF(cli_params)};

// The tables whose members are settings.
enum { TABLES = 2 };
static void config_tables(struct cli *c, struct param_target out[static TABLES])
{
    out[0] = (struct param_target){&cli_options, c};
    out[1] = (struct param_target){&fleet_settings, &c->fleet};
}

static int read_variables(const struct param_table *table, void *object, struct err *err)
{
    const struct param_target target = {table, object};
    if (settings_read_environment(&target, 1, "NUMAPROBE_", false, err) == 0)
        return 0;
    err->member[0] = '\0'; // the text names the variable
    return -1;
}

int config_load_fleet(struct cli *c, struct err *err)
{
    return read_variables(&fleet_settings, &c->fleet, err);
}

static struct winsize size_of_terminal(int fd)
{
    enum { USUAL_WIDTH = 80 };
    struct winsize size = {0};
    ioctl(fd, TIOCGWINSZ, &size);
    size.ws_col = size.ws_col ? size.ws_col : USUAL_WIDTH;
    return size;
}

int config_columns_of(int fd)
{
    return size_of_terminal(fd).ws_col;
}

int config_lines_of(int fd)
{
    return size_of_terminal(fd).ws_row;
}

static void find_terminals(struct cli *c)
{
    const char *kind = getenv("TERM");
    c->term_obeys = kind && *kind && strcmp(kind, "dumb") != 0;
    c->to_terminal = isatty(STDOUT_FILENO);
    c->err_terminal = isatty(STDERR_FILENO) && c->term_obeys;
}

static int config_read_file(const struct param_target *targets, const char *path, struct err *err)
{
    if (settings_read_file(targets, TABLES, path, true, err) == 0)
        return 0;
    err->member[0] = '\0'; // the text names the file, the line and the setting
    return -1;
}

int config_load(struct cli *c, struct err *err)
{
    char path[PATH_MAX];
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    struct param_target targets[TABLES];
    config_tables(c, targets);
    settings_defaults(targets, TABLES);
    if (config_read_file(targets, "/etc/numaprobe/numaprobe.conf", err) < 0)
        return -1;
    if (config && !*config)
        config = NULL; // an empty variable is as one that is not set
    snprintf(path, sizeof path, config ? "%s/numaprobe/config" : "%s/.config/numaprobe/config",
             config ? config
             : home ? home
                    : "");
    if ((config || home) && config_read_file(targets, path, err) < 0)
        return -1;
    if (read_variables(&cli_options, c, err) < 0)
        return -1;
    find_terminals(c);
    return 0;
}

void config_find_daemon(struct cli *c)
{
    if (*c->url)
        return;
    c->url_assumed = access(SOCKET_OF_SYSTEM, R_OK | W_OK) < 0;
    snprintf(c->url, sizeof c->url, "%s", c->url_assumed ? USUAL_PORT : "unix:" SOCKET_OF_SYSTEM);
}

// SPDX-License-Identifier: Apache-2.0
// The collector as a table of contents: what is opened here in order is closed in reverse.
#include "fleet/fleetd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/str.h"
#include "base/written.h"
#include "core/os/child.h"
#include "core/os/dirs.h"
#include "core/os/service.h"
#include "fleet/campaigns/submit.h"
#include "fleet/collect/draining_main.h"
#include "fleet/collect/ingest_main.h"
#include "fleet/collect/naming_main.h"
#include "fleet/judging_main.h"
#include "fleet/reading_main.h"
#include "fleet/routes.h"
#include "fleet/services/gzip.h"
#include "fleet/services/services.h"
#include "fleet/settings/config.h"
#include "fleet/store/transfer.h"
#include "http/server/server.h"
#include "http/server/worker_message.h"

struct fleetd {
    struct fleet_services services; // first: it is the context of the service
    struct fleetd_config config;
    struct http_service service;
    struct loop *loop;
    struct service *manager;    // of services: systemd
    struct access_rules access; // its tokens are to be freed
    struct server *server;
    int argc, nodes, pending; // pending: changed settings that need a restart
    char **argv;
    struct loop_watch *sigterm, *sigint, *sighup;
    struct log_budget spared;
};

// ---- The process that reads ---------------------------------------------------------------------

static int spawn_reading(void *context, int control, pid_t *pid, struct err *err)
{
    struct fleetd *d = context;
    char program[] = "numaprobe-fleetd", option[] = "--work";
    char *argv[] = {program, option, d->config.groups_file, NULL};
    CLEANUP_FD int where = child_text(d->config.store, err);
    const struct child_fd fds[] = {{control, WORKER_CONTROL_FD}, {where, READING_STORE_FD}};
    if (where < 0)
        return -1;
    errno = child_exec(pid, argv, fds, COUNT_OF(fds), false);
    return errno ? err_sys(err, "starting a worker") : 0;
}

static bool reading_outdated(void *context)
{
    (void)context;
    return false; // it reads what is stored
}

// Whatever is stored, counted: responses that were made before are made anew.
static int64_t fleet_version(void *context)
{
    const struct fleetd *d = context;
    return d->services.started_ms + poller_changes(d->services.poller, clock_mono_ms());
}

static int64_t fleet_generation(void *context)
{
    const struct fleetd *d = context;
    return d->services.started_ms;
}

// What a request lacks, its response says: a client could fill the log with it.
static void reading_failed(void *context, const struct err *err)
{
    struct fleetd *d = context;
    if (err_info(err->code)->http >= 500 && log_may(&d->spared, clock_mono_ms()))
        log_error("reading", err);
}

static const struct job_service reading_jobs = {.spawn = spawn_reading,
                                                .is_outdated = reading_outdated,
                                                .version = fleet_version,
                                                .generation = fleet_generation,
                                                .failed = reading_failed};

// ---- Events -------------------------------------------------------------------------------------

static void fleetd_on_stop(void *ctx, uint32_t signo)
{
    struct fleetd *d = ctx;
    log_event(LOG_LVL_INFO, "stopping", "signal=%s", strsignal((int)signo));
    loop_stop(d->loop);
}

// What people see in systemctl status.
static void fleetd_report_state(struct fleetd *d)
{
    char rest[64] = "";
    if (!d->nodes && !poller_named(d->services.poller))
        return; // the sources are being read
    if (d->pending)
        snprintf(rest, sizeof rest, "; settings changed that need a restart: %d", d->pending);
    service_status(d->manager, "Collecting from %d node%s%s", d->nodes, str_plural(d->nodes), rest);
}

// Without their values: those of sources may have keys.
static void fleetd_on_pending(void *ctx, const struct param *p, const char *in_use,
                              const char *wanted)
{
    struct fleetd *d = ctx;
    (void)in_use;
    (void)wanted;
    d->pending++;
    log_event(LOG_LVL_WARN, "reload", "setting=%s text=\"needs a restart\"", p->name);
}

// Settings need a restart. Who reloads after a change of one has to know.
static void compare_settings(struct fleetd *d)
{
    const int before = d->pending;
    struct err err;
    d->pending = 0;
    if (fleetd_config_compare(&d->config, d->argc, d->argv, fleet_store_check, fleetd_on_pending, d,
                              &err) < 0) {
        d->pending = before;
        log_error("reload", &err);
    }
    fleetd_report_state(d);
}

// Whatever is read again. Of the configuration only what has changed is said.
static void fleetd_on_reload(void *ctx, uint32_t signo)
{
    struct fleetd *d = ctx;
    const struct http_config c = http_settings_config(&d->config.http);
    struct err err;
    (void)signo;
    compare_settings(d);
    if (d->server && server_renew_tls(d->server, &c, &err) < 0)
        log_error("reload", &err);
    if (poller_renew_tls(d->services.poller, &err) < 0)
        log_error("reload", &err);
    campaigns_renew_tls(d->services.campaigns);
    naming_again(d->services.naming);
    log_event(LOG_LVL_INFO, "reload",
              "text=\"the sources of nodes and the files of TLS are read again\"");
}

static bool on_named(void *ctx, const struct naming_node *nodes, int n, bool whole)
{
    struct fleetd *d = ctx;
    struct err err;
    bool set = poller_set_nodes(d->services.poller, nodes, n, whole, &err) == 0;
    if (!set)
        log_error("sources", &err);
    d->nodes = n;
    fleetd_report_state(d);
    return set;
}

// ---- Life ---------------------------------------------------------------------------------------

static int fleetd_open_signals(struct fleetd *d, struct err *err)
{
    signal(SIGPIPE, SIG_IGN);
    d->sigterm = loop_watch_signal(d->loop, SIGTERM, fleetd_on_stop, d, err);
    d->sigint = d->sigterm ? loop_watch_signal(d->loop, SIGINT, fleetd_on_stop, d, err) : NULL;
    d->sighup = d->sigint ? loop_watch_signal(d->loop, SIGHUP, fleetd_on_reload, d, err) : NULL;
    return d->sighup ? 0 : -1;
}

// What is wrong with the settings shows here, before there is a store.
static int fleetd_open_settings(struct fleetd *d, struct err *err)
{
    const int *passed;
    int n = service_fds(d->manager, &passed);
    if (http_settings_access(&d->config.http, &d->access, err) < 0)
        return -1;
    return fleetd_check_start(&d->config, passed, n, err);
}

static int fleetd_open(struct fleetd *d, struct err *err)
{
    const struct fleetd_config *c = &d->config;
    d->services.config = c;
    d->services.started_ms = clock_wall_ms();
    d->loop = loop_new(err);
    d->manager = d->loop ? service_new(d->loop, err) : NULL;
    if (!d->manager || fleetd_open_settings(d, err) < 0 ||
        dirs_make(c->state_dir, 0755, 0750, err) < 0 ||
        dirs_make(c->run_dir, 0755, 0755, err) < 0 || fleetd_open_signals(d, err) < 0)
        return -1;
    d->services.poller = poller_new(d->loop, c, err);
    d->services.naming = d->services.poller ? naming_new(d->loop, c, on_named, d, err) : NULL;
    d->services.campaigns =
        d->services.naming ? campaigns_new(d->loop, c, d->services.poller, err) : NULL;
    d->services.judging = d->services.campaigns
                              ? judging_new(d->loop, c, d->services.poller, d->services.naming, err)
                              : NULL;
    return d->services.judging ? 0 : -1;
}

static int fleetd_serve(struct fleetd *d, struct err *err)
{
    struct http_config config = http_settings_config(&d->config.http);
    config.n_passed = service_fds(d->manager, &config.passed);
    d->service = (struct http_service){
        .routes = fleet_routes, .context = d, .jobs = &reading_jobs, .gzip = gzip_pack};
    d->server = server_new(d->loop, &d->service, &d->access, &config, err);
    if (!d->server)
        return -1;
    log_event(LOG_LVL_INFO, "ready", "listen=%s socket=%s version=%s", server_addresses(d->server),
              server_socket(d->server), NUMAPROBE_VERSION);
    service_ready(d->manager);
    int rc = loop_run(d->loop, err);
    service_stopping(d->manager);
    return rc;
}

static void fleetd_close(struct fleetd *d)
{
    server_free(d->server);
    tokens_free(d->access.tokens);
    judging_free(d->services.judging);
    naming_free(d->services.naming);
    campaigns_free(d->services.campaigns);
    poller_free(d->services.poller);
    loop_unwatch(d->sighup);
    loop_unwatch(d->sigint);
    loop_unwatch(d->sigterm);
    service_free(d->manager);
    loop_free(d->loop);
}

static int fleetd_print_help(void)
{
    puts("usage: numaprobe-fleetd [options]\n\nCollects the runs of many nodes, keeps their "
         "history and judges it.\n\noptions (also NUMAPROBE_FLEETD_<NAME> in the environment, "
         "and in the\nconfiguration file):");
    fleetd_config_help(stdout);
    puts("\nexit status:\n  0    stopped by a signal\n  1    failure; the log has the reason\n"
         "  2    usage error");
    return written_status("numaprobe-fleetd");
}

static int add_source_nodes(const struct fleetd_config *c, const char *source,
                            struct nodeset *nodes, struct err *err)
{
    CLEANUP_BUF struct buf lines = BUF_INIT;
    struct named_node node;
    char shown[FLEETD_SOURCE_MAX];
    if (naming_read(c, source, &lines, err) < 0)
        return err_prefix(err, "%s", fleetd_source_shown(source, shown));
    char *rest = lines.len ? lines.data : NULL;
    for (char *line; (line = strsep(&rest, "\n")) && *line;)
        if (named_read(&node, line, err) < 0 || nodeset_add(nodes, node.name, err) < 0)
            return -1;
    return 0;
}

static int fleetd_print_nodes(const struct fleetd_config *c)
{
    static char sources[FLEETD_SOURCES_MAX][FLEETD_SOURCE_MAX];
    CLEANUP_NODESET struct nodeset nodes = {0};
    struct err err = {0};
    int n = fleetd_sources(c, sources, &err);
    if (!n)
        n = err_set(&err, ERR_USAGE, "source",
                    "no source of nodes is set: use --source, --nodes, --hostfile or --from-slurm");
    for (int i = 0, last = n; i < last && n >= 0; i++)
        n = add_source_nodes(c, sources[i], &nodes, &err) < 0 ? -1 : n;
    if (n < 0) {
        fprintf(stderr, "numaprobe-fleetd: %s\n", err.text);
        return err_info(err.code)->exit;
    }
    nodeset_sort(&nodes);
    for (int i = 0; i < nodes.n; i++)
        puts(nodes.names[i]);
    return written_status("numaprobe-fleetd");
}

struct move_display {
    int64_t printed_ms;
};

// At most once a second.
static void print_move(void *ctx, const struct fleet_transfer *t)
{
    struct move_display *d = ctx;
    int64_t now = clock_mono_ms();
    if (now - d->printed_ms < 1000)
        return;
    d->printed_ms = now;
    fprintf(stderr, "%s: %lld of %lld\n", t->step, (long long)t->done, (long long)t->all);
}

static int fleetd_move(const struct fleetd_config *c)
{
    struct move_display display = {clock_mono_ms()};
    struct err err = {0};
    if (fleet_store_transfer(c->store, c->move_to, print_move, &display, &err) < 0) {
        const char *option = strcmp(err.member, "store") == 0     ? "--store: "
                             : strcmp(err.member, "move_to") == 0 ? "--move-to: "
                                                                  : "";
        fprintf(stderr, "numaprobe-fleetd: %s%s\n", option, err.text);
        return err_info(err.code)->exit;
    }
    printf("The history was copied and compared. Set: store = %s\n", c->move_to);
    return written_status("numaprobe-fleetd");
}

static int fleetd_act(const struct fleetd_config *c, enum settings_action action)
{
    switch (action) {
    case SETTINGS_HELP:
        return fleetd_print_help();
    case SETTINGS_ROUTES:
        return routes_print(fleet_routes, stdout);
    case SETTINGS_PRINT:
        fleetd_config_print(c, stdout);
        return written_status("numaprobe-fleetd");
    case SETTINGS_OWN:
        return fleetd_print_nodes(c);
    case SETTINGS_OWN_WITH:
        return fleetd_move(c);
    case SETTINGS_VERSION:
        puts("numaprobe-fleetd " NUMAPROBE_VERSION);
        return written_status("numaprobe-fleetd");
    default:
        return 0; // --check-config: it has been
    }
}

int fleetd_main(int argc, char **argv)
{
    process_begin();
    if (argc > 1 && strcmp(argv[1], "--ingest") == 0)
        return ingest_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--naming") == 0)
        return naming_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--work") == 0)
        return reading_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--submit") == 0)
        return submit_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--judge") == 0)
        return judging_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--drain") == 0)
        return draining_main(argc, argv);
    struct fleetd d = {.argc = argc, .argv = argv};
    struct err err = {0};
    enum settings_action action;
    if (fleetd_config_read(&d.config, argc, argv, fleet_store_check, &action, &err) < 0) {
        fprintf(stderr, "numaprobe-fleetd: %s\n", err.text);
        return err_info(ERR_USAGE)->exit;
    }
    if (action != SETTINGS_RUN)
        return fleetd_act(&d.config, action);
    process_may_be_stopped();
    log_init(log_level_of(d.config.log_level), getenv("JOURNAL_STREAM") != NULL);
    if (fleetd_check_file(&d.config, &err) < 0)
        log_error("store", &err);
    int rc = fleetd_open(&d, &err) < 0 ? -1 : fleetd_serve(&d, &err);
    if (rc < 0) {
        fleetd_at_fault(argc, argv, &err);
        log_error("failed", &err);
    }
    fleetd_close(&d);
    return rc < 0 ? err_info(err.code)->exit : 0;
}

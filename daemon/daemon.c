// SPDX-License-Identifier: Apache-2.0
// The daemon as a table of contents: what is opened here in order is closed in reverse.
#include "daemon/daemon.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "api/api.h"
#include "api/routes.h"
#include "api/worker_main.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/process.h"
#include "base/written.h"
#include "core/launch/supervisor.h"
#include "core/launch/supervisor_main.h"
#include "core/os/dirs.h"
#include "core/os/service.h"
#include "core/store/worker.h"
#include "core/upkeep/upkeep.h"
#include "daemon/config.h"

struct daemon {
    struct config config;
    int argc, pending; // pending: changed settings that need a restart
    bool tls_moved;    // of them: where the files of TLS are
    char **argv;
    struct loop *loop;
    struct service *service;
    struct store *store;
    struct machine machine;
    struct runner *runner;
    struct upkeep *upkeep;
    struct access_rules access; // its tokens are to be freed
    struct api *api;
    struct loop_watch *sigterm, *sigint, *sighup;
    struct runner_watch *runs;
    int64_t running; // the run that systemd was notified of; 0: none
};

static void on_stop(void *ctx, uint32_t signo)
{
    struct daemon *d = ctx;
    log_event(LOG_LVL_INFO, "stopping", "signal=%s", strsignal((int)signo));
    loop_stop(d->loop);
}

static void use_log_level(const struct config *c)
{
    log_init(log_level_of(c->log_level), getenv("JOURNAL_STREAM") != NULL);
}

// Puts into effect what is live in the table of daemon/config.c.
static void use_config(struct daemon *d)
{
    use_log_level(&d->config);
    upkeep_set_limits(d->upkeep, &d->config.limits);
    runner_policy(d->runner, &d->config.policy);
}

// What people see in systemctl status.
static void daemon_report_state(struct daemon *d)
{
    char rest[64] = "";
    if (d->pending)
        snprintf(rest, sizeof rest, "; settings changed that need a restart: %d", d->pending);
    if (d->running)
        service_status(d->service, "Run %" PRId64 " is running%s", d->running, rest);
    else
        service_status(d->service, "Ready%s", rest);
}

static bool is_file_of_tls(const char *name)
{
    return strcmp(name, "tls_certificate") == 0 || strcmp(name, "tls_key") == 0 ||
           strcmp(name, "tls_client_ca") == 0;
}

static void on_pending(void *ctx, const struct param *p, const char *in_use, const char *wanted)
{
    struct daemon *d = ctx;
    if (p->live)
        return; // it is logged once it is in use
    d->pending++;
    d->tls_moved |= is_file_of_tls(p->name);
    log_event(LOG_LVL_WARN, "reload",
              "setting=%s in_use=\"%s\" wanted=\"%s\" text=\"needs a restart\"", p->name,
              log_quote(in_use).text, log_quote(wanted).text);
}

// What the files of TLS hold is no setting, but a reload is for it where certificates are renewed.
// Where others are to be used from the next start on, those in use may be gone: the log says so.
static int reload_tls(struct daemon *d, struct err *err)
{
    const struct http_config http = http_settings_config(&d->config.http);
    if (api_renew_tls(d->api, &http, err) == 0)
        return 0;
    if (d->tls_moved)
        log_event(LOG_LVL_WARN, "tls.certificate", "problem=\"%s\" text=\"not renewed\"",
                  log_quote(err->text).text);
    return d->tls_moved ? 0 : -1;
}

static void on_applied(void *ctx, const struct param *p, const char *was, const char *is)
{
    (void)ctx;
    log_event(LOG_LVL_INFO, "reload", "setting=%s was=\"%s\" is=\"%s\"", p->name,
              log_quote(was).text, log_quote(is).text);
}

static void on_reload(void *ctx, uint32_t signo)
{
    struct daemon *d = ctx;
    struct config before = d->config;
    const int pending = d->pending;
    struct err err;
    (void)signo;
    service_reloading(d->service);
    d->pending = 0;
    d->tls_moved = false;
    if (config_reload(&d->config, d->argc, d->argv, on_pending, d, &err) < 0 ||
        reload_tls(d, &err) < 0) {
        d->config = before;
        d->pending = pending;
        log_error("reload", &err);
        service_status(d->service, "The new configuration is refused, the old one kept: %s",
                       err.text);
    } else {
        use_config(d);
        config_compare(&before, &d->config, on_applied, d);
        log_event(LOG_LVL_INFO, "reload", "text=\"the configuration was read again\"");
        daemon_report_state(d);
    }
    service_ready(d->service);
}

static void on_run_event(void *ctx, const struct run_event *e)
{
    struct daemon *d = ctx;
    int64_t before = d->running;
    if (e->kind == EVENT_STATE && !e->final && !before && runner_busy(d->runner))
        d->running = e->run_id;
    else if (e->final && e->run_id == before)
        d->running = 0;
    if (d->running != before)
        daemon_report_state(d);
}

// What is wrong with the settings shows here, before there is a database. A reload that is
// requested from now on, while a database is upgraded, waits and would otherwise end the daemon.
static int open_settings(struct daemon *d, struct err *err)
{
    const int *passed;
    d->loop = loop_new(err);
    d->service = d->loop ? service_new(d->loop, err) : NULL;
    d->sighup = d->service ? loop_watch_signal(d->loop, SIGHUP, on_reload, d, err) : NULL;
    if (!d->sighup)
        return -1;
    int n = service_fds(d->service, &passed);
    if (http_settings_access(&d->config.http, &d->access, err) < 0)
        return -1;
    return config_check(&d->config, passed, n, err);
}

static int open_core(struct daemon *d, struct err *err)
{
    const struct config *c = &d->config;
    if (dirs_make(c->state_dir, 0755, 0750, err) < 0 || dirs_make(c->run_dir, 0755, 0711, err) < 0)
        return -1;
    d->store = store_open(c->state_dir, err);
    if (!d->store || machine_read(&d->machine, "", err) < 0)
        return -1;
    struct runner_config runner = {c->run_dir, *c->job_user ? c->job_user : NULL, &c->policy};
    d->runner = runner_new(d->loop, d->store, &d->machine, &runner, err);
    if (!d->runner)
        return -1;
    d->upkeep = upkeep_new(d->loop, d->store, d->runner, &c->limits, err);
    return d->upkeep ? 0 : -1;
}

static int daemon_open_signals(struct daemon *d, struct err *err)
{
    signal(SIGPIPE, SIG_IGN);
    d->sigterm = loop_watch_signal(d->loop, SIGTERM, on_stop, d, err);
    d->sigint = d->sigterm ? loop_watch_signal(d->loop, SIGINT, on_stop, d, err) : NULL;
    return d->sigint ? 0 : -1;
}

static int open_api(struct daemon *d, struct err *err)
{
    const struct config *c = &d->config;
    struct api_services services = {.loop = d->loop,
                                    .store = d->store,
                                    .machine = &d->machine,
                                    .runner = d->runner,
                                    .upkeep = d->upkeep};
    struct http_config config = http_settings_config(&c->http);
    config.n_passed = service_fds(d->service, &config.passed);
    d->api = api_new(&services, &d->access, &config, err);
    d->runs = d->api ? runner_watch_add(d->runner, RUNNER_ANY_RUN, on_run_event, d, err) : NULL;
    return d->runs ? 0 : -1;
}

// A database whose damage shows only now must not keep the daemon from starting.
static int start_runner(struct daemon *d, struct err *err)
{
    if (runner_start(d->runner, err) == 0)
        return 0;
    // By what one connection has read: a fresh one looks again.
    if (err->code == ERR_DAMAGED && store_reopen(d->store, err) == 0 &&
        runner_start(d->runner, err) == 0)
        return 0;
    if (err->code != ERR_DAMAGED)
        return -1;
    struct err why = *err;
    if (upkeep_set_aside(d->upkeep, why.text, err) < 0)
        return -1;
    return runner_start(d->runner, err);
}

static int serve(struct daemon *d, struct err *err)
{
    // Orphans of a run whose supervisor was killed come to us instead of to process 1.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (open_settings(d, err) < 0 || open_core(d, err) < 0 || daemon_open_signals(d, err) < 0 ||
        open_api(d, err) < 0)
        return -1;
    upkeep_start(d->upkeep);
    if (start_runner(d, err) < 0)
        return -1;
    log_event(LOG_LVL_INFO, "ready", "listen=%s socket=%s version=%s", api_addresses(d->api),
              api_socket(d->api), NUMAPROBE_VERSION);
    daemon_report_state(d);
    service_ready(d->service);
    int rc = loop_run(d->loop, err);
    service_stopping(d->service);
    return rc;
}

static void close_all(struct daemon *d)
{
    api_free(d->api);
    runner_watch_remove(d->runs);
    tokens_free(d->access.tokens);
    upkeep_free(d->upkeep);
    loop_unwatch(d->sighup);
    loop_unwatch(d->sigint);
    loop_unwatch(d->sigterm);
    if (d->runner)
        runner_free(d->runner);
    machine_fini(&d->machine);
    store_close(d->store);
    service_free(d->service);
    loop_free(d->loop);
}

static int print_help(void)
{
    puts("usage: numaprobed [options]\n\nServes measurements of this node's memory over HTTP.\n\n"
         "options (also NUMAPROBED_<NAME> in the environment, and in the\nconfiguration file):");
    config_print_help(stdout);
    puts("\nexit status:\n  0    stopped by a signal\n  1    failure; the log has the reason\n"
         "  2    usage error");
    return written_status("numaprobed");
}

static int print_version(void)
{
    puts("numaprobed " NUMAPROBE_VERSION);
    return written_status("numaprobed");
}

int daemon_main(int argc, char **argv)
{
    process_begin();
    if (argc > 1 && strcmp(argv[1], "--supervise") == 0)
        return supervisor_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--database") == 0)
        return store_child_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--work") == 0)
        return worker_main(argc, argv);
    struct daemon d = {.argc = argc, .argv = argv};
    struct err err = {0};
    enum settings_action action;
    if (config_read(&d.config, argc, argv, &action, &err) < 0) {
        fprintf(stderr, "numaprobed: %s\n", err.text);
        return err_info(ERR_USAGE)->exit;
    }
    if (action == SETTINGS_HELP)
        return print_help();
    if (action == SETTINGS_ROUTES)
        return routes_print(routes, stdout);
    if (action == SETTINGS_PRINT) {
        config_print(&d.config, stdout);
        return written_status("numaprobed");
    }
    if (action == SETTINGS_CHECK)
        return 0;
    if (action == SETTINGS_VERSION)
        return print_version();
    process_may_be_stopped();
    use_log_level(&d.config);
    int rc = serve(&d, &err);
    if (rc < 0) {
        config_at_fault(argc, argv, &err);
        log_error("failed", &err);
    }
    close_all(&d);
    return rc < 0 ? err_info(err.code)->exit : 0;
}

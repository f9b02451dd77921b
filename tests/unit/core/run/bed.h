// SPDX-License-Identifier: Apache-2.0
// A runner with a real store, a real supervisor and a fake bench, on a machine and a node that say
// what a test wants: two CPUs, one node. Needs python3 for the fakes.
#pragma once
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/admission/monitor.h"
#include "core/launch/planner.h"
#include "core/launch/supervisor.h"
#include "core/launch/supervisor_main.h"
#include "core/node/checkup.h"
#include "core/os/processes.h"
#include "core/run/runner.h"
#include "core/store/db.h"
#include "core/store/store.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/data.h"
#include "tests/unit/tap.h"

__attribute__((unused)) static bool no_room;

__attribute__((unused)) static int deaf; // so many times recv fails

ssize_t recv(int fd, void *to, size_t n, int flags)
{
    if (deaf == 0)
        return recvfrom(fd, to, n, flags, NULL, NULL);
    deaf--;
    errno = ECONNRESET;
    return -1;
}

int plan_make(struct plan *p, const struct spec *s, const struct topology *t, struct err *err)
{
    (void)t;
    if (strcmp(s->cpus, "99") == 0)
        return err_set(err, ERR_INVALID, "cpus", "there is no CPU 99");
    p->ranks = calloc(2, sizeof *p->ranks);
    p->n_ranks = 2;
    return p->ranks ? 0 : -1;
}

// A node that is free, or not, as a test says.
struct monitor {
    int begun, ended;
};

__attribute__((unused)) static struct monitor monitor;

__attribute__((unused)) static struct {
    bool disturbs;
    enum policy_action when_disturbing;
    int refusals;           // so many checks refuse, then none
    struct loop *when_seen; // is stopped when a run was looked at
} node = {.when_disturbing = POLICY_REFUSE};

struct monitor *monitor_new(const struct policy *p, const struct topology *t, const char *root,
                            struct err *err)
{
    (void)p, (void)t, (void)root, (void)err;
    monitor = (struct monitor){0};
    return &monitor;
}

void monitor_free(struct monitor *a)
{
    (void)a;
}

void monitor_set_policy(struct monitor *a, const struct policy *p)
{
    (void)a, (void)p;
}

int monitor_check(struct monitor *a, const struct plan *p, bool force,
                  const struct batch_place *within, struct admission *out, struct err *err)
{
    (void)a, (void)p, (void)within, (void)err;
    *out = (struct admission){.n = no_room || (node.refusals > 0 && !force)};
    out->list[0] = (struct blocker){.kind = no_room ? ADMIT_MEMORY : ADMIT_BUSY_CPUS};
    snprintf(out->list[0].text, sizeof out->list[0].text, "CPU 0 is busy");
    node.refusals -= node.refusals > 0;
    if (force) {
        out->n_warnings = 1;
        out->warnings[0] = out->list[0];
        out->warnings[0].forced = true;
    }
    return 0;
}

int monitor_lock(const struct monitor *a)
{
    (void)a;
    return -1;
}

int monitor_begin(struct monitor *a, const struct plan *p, bool force, struct err *err)
{
    (void)p, (void)force, (void)err;
    a->begun++;
    return 0;
}

void monitor_end(struct monitor *a)
{
    a->ended++;
}

bool monitor_is_running(const struct monitor *a)
{
    (void)a;
    return false;
}

bool monitor_disturbs(struct monitor *a, struct blocker *b)
{
    (void)a;
    *b = (struct blocker){.kind = ADMIT_DISTURBING, .measured = 60, .limit = 25};
    snprintf(b->text, sizeof b->text, "user.slice waited");
    if (node.when_seen)
        loop_stop(node.when_seen);
    return node.disturbs;
}

int monitor_suffered(struct monitor *a, struct blocker *list, int most)
{
    (void)a, (void)most;
    list[0] = (struct blocker){.kind = ADMIT_STEAL};
    snprintf(list[0].text, sizeof list[0].text, "the hypervisor took 7 %%");
    return 1;
}

enum policy_action monitor_action(const struct monitor *a, enum admission_kind kind)
{
    (void)a;
    return kind == ADMIT_DISTURBING ? node.when_disturbing : POLICY_REFUSE;
}

bool admission_may_pass(const struct admission *a)
{
    return a->n > 0;
}

int64_t admission_plan_bytes(const struct plan *p)
{
    (void)p;
    return 0;
}

int admission_error(const struct admission *a, struct err *err)
{
    return !a->n ? 0
                 : err_set(err, no_room ? ERR_NO_MEMORY_NODE : ERR_BUSY, "", "%s",
                           no_room ? "node 0 is full" : a->list[0].text);
}

static int facts_readings;

void fingerprint_read(struct fingerprint *f, const struct topology *t, const char *root)
{
    (void)t;
    (void)root;
    facts_readings++;
    *f = (struct fingerprint){0};
    facts_seal(&f->machine_class);
    facts_add(&f->config, "thp", "madvise");
    facts_seal(&f->config);
}

int machine_findings(const struct topology *t, const char *root, struct finding *out, int most)
{
    (void)t;
    (void)root;
    (void)most;
    out[0] = (struct finding){.name = "load", .text = "the load is 3"};
    return 1;
}

// What is there by now, as a test says. The runner was given one with everything.
enum change { NOTHING, CPU_GONE, MEMORY_GONE, MEMORY_SHRUNK, CANNOT_READ };

__attribute__((unused)) static enum change change;

__attribute__((unused)) static void make_machine(struct machine *m, enum change with)
{
    struct topology *t = &m->topology;
    *m = (struct machine){.hostname = "node1", .topology_xml = strdup(with ? "<now/>" : "<then/>")};
    *t = (struct topology){.n_cpus = 2, .n_nodes = 1};
    t->cpus = calloc(2, sizeof *t->cpus);
    t->nodes = calloc(1, sizeof *t->nodes);
    t->cpus[0] = (struct topo_cpu){.l3 = -1, .allowed = with != CPU_GONE};
    t->cpus[1] = (struct topo_cpu){.os = 1, .core = 1, .l3 = -1, .allowed = true};
    t->nodes[0] = (struct topo_node){.memory_bytes = 1 << 30, .n_cpus = 2, .allowed = true};
    t->nodes[0].memory_bytes >>= with == MEMORY_SHRUNK ? 1 : with == MEMORY_GONE ? 31 : 0;
}

void machine_fini(struct machine *m)
{
    topology_fini(&m->topology);
    free(m->topology_xml);
    *m = (struct machine){0};
}

int machine_refresh(struct machine *m, struct machine *was, const char *root, struct err *err)
{
    static enum change seen;
    (void)root;
    if (change == CANNOT_READ)
        return err_set(err, ERR_SYSTEM, "", "no /sys");
    if (change == seen)
        return 0;
    *was = *m;
    make_machine(m, seen = change);
    return 1;
}

__attribute__((unused)) static char dir[64], run_dir[96];

__attribute__((unused)) static struct machine machine;

struct bed {
    struct loop *loop;
    struct store *store;
    struct runner *runner;
    int64_t wait_for, last_event;
    int states, progresses;
    bool in_order, cancel_at_progress, kill_at_progress, stop_at_progress, stop_at_state, got_final;
    int64_t canceled_ms, final_ms;
};

// The only child of ours that is a supervisor.
__attribute__((unused)) static pid_t supervisor_pid(void)
{
    char path[64], text[4096] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    return atoi(text);
}

__attribute__((unused)) static void on_progress(struct bed *b)
{
    struct err err;
    b->progresses++;
    if (b->cancel_at_progress && !b->canceled_ms) {
        b->canceled_ms = clock_mono_ms();
        CHECK_INT(runner_cancel(b->runner, b->wait_for, &err), 0, "cancel");
    }
    if (b->kill_at_progress && !b->canceled_ms) {
        b->canceled_ms = clock_mono_ms();
        CHECK(kill(supervisor_pid(), SIGKILL) == 0, "supervisor killed");
    }
    if (b->stop_at_progress)
        loop_stop(b->loop);
}

__attribute__((unused)) static void on_event(void *ctx, const struct run_event *e)
{
    struct bed *b = ctx;
    if (e->run_id != b->wait_for)
        return;
    b->in_order = b->in_order && e->event_id == b->last_event + 1;
    b->last_event = e->event_id;
    b->states += e->kind == EVENT_STATE;
    if (e->kind == EVENT_STATE && b->stop_at_state)
        loop_stop(b->loop);
    if (e->kind == EVENT_PROGRESS)
        on_progress(b);
    if (e->final) {
        b->got_final = true;
        b->final_ms = clock_mono_ms();
        loop_stop(b->loop);
    }
}

__attribute__((unused)) static void give_up(void *ctx, uint32_t events)
{
    struct bed *b = ctx;
    (void)events;
    loop_stop(b->loop);
}

// Until the final event of b->wait_for. A whole queue of 32 runs takes 10 s, on a busy machine much
// longer.
__attribute__((unused)) static void wait_final(struct bed *b)
{
    struct err err;
    struct loop_timer *limit = loop_timer_new(b->loop, give_up, b, &err);
    loop_timer_set(limit, 90000);
    if (!b->got_final)
        loop_run(b->loop, &err);
    loop_timer_free(limit);
}

__attribute__((unused)) static void behave(const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/fake_bench.behaviour", dir);
    FILE *f = fopen(path, "w");
    fprintf(f, "%s\n", text);
    fclose(f);
    chmod(path, 0644);
}

__attribute__((unused)) static bool bed_open(struct bed *b)
{
    struct err err = {0};
    *b = (struct bed){.in_order = true};
    // Its folder is closed to other accounts; which one ranks get is test_account's business.
    struct runner_config config = {.run_dir = run_dir, .job_user = geteuid() ? NULL : "root"};
    char state[96];
    snprintf(state, sizeof state, "%s/state", dir);
    b->loop = loop_new(&err);
    b->store = b->loop ? store_open(state, &err) : NULL;
    b->runner = b->store ? runner_new(b->loop, b->store, &machine, &config, &err) : NULL;
    if (b->runner && runner_start(b->runner, &err) == 0)
        return true;
    printf("# %s\n", err.text);
    return false;
}

__attribute__((unused)) static void bed_close(struct bed *b)
{
    runner_free(b->runner);
    store_close(b->store);
    loop_free(b->loop);
}

__attribute__((unused)) static void quick_spec(struct spec *s)
{
    spec_init(s, BENCHMARK_LATENCY);
    snprintf(s->size, sizeof s->size, "1-4");
    s->timeout_s = 20;
}

__attribute__((unused)) static int64_t submit(struct bed *b)
{
    struct err err = {0};
    struct spec s;
    int64_t id = 0;
    bool again;
    quick_spec(&s);
    if (runner_submit(b->runner, &s, NULL, NULL, &id, &again, &err) < 0)
        printf("# submit: %s\n", err.text);
    b->wait_for = id;
    b->last_event = runner_event_id(b->runner, id);
    b->states = 1;
    b->progresses = 0;
    b->in_order = true;
    b->got_final = false;
    b->canceled_ms = 0;
    return id;
}

__attribute__((unused)) static int entries(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

__attribute__((unused)) static void check_nothing_left(const char *what)
{
    CHECK_INT(entries(run_dir), 0, "%s: no directory is left", what);
    CHECK_INT(proc_kill_below(0), 0, "%s: no process is left", what);
}

// Runs once with the behaviour; the caller calls run_fini.
__attribute__((unused)) static void run_once(struct bed *b, const char *behaviour, struct run *r)
{
    struct err err = {0};
    behave(behaviour);
    int64_t id = submit(b);
    wait_final(b);
    if (runner_run_get(b->runner, id, r, &err) < 0)
        printf("# %s\n", err.text);
}

__attribute__((unused)) static void set_up(void)
{
    char bench[96], target[300], mpirun[300];
    dir_make(dir);
    chmod(dir, 0711);
    snprintf(run_dir, sizeof run_dir, "%s/run", dir);
    snprintf(bench, sizeof bench, "%s/fake_bench", dir);
    source_path(target, sizeof target, "tests/fakes/fake_bench.py");
    source_path(mpirun, sizeof mpirun, "tests/fakes/fake_mpirun.py");
    if (symlink(target, bench) < 0)
        abort();
    setenv("NUMAPROBE_BENCH", bench, 1);
    if (!getenv("NUMAPROBE_MPIRUN"))
        setenv("NUMAPROBE_MPIRUN", mpirun, 1);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    log_init(LOG_LVL_ERROR, 0);
}

// The whole of a test program: `tests` in the order of the list, with one runner. It is its own
// supervisor.
__attribute__((unused)) static int run_tests(int argc, char **argv,
                                             void (*const *tests)(struct bed *b))
{
    struct bed b;
    struct err err;
    if (argc > 1 && strcmp(argv[1], "--supervise") == 0)
        return supervisor_main(argc, argv);
    set_up();
    make_machine(&machine, NOTHING);
    setvbuf(stdout, NULL, _IOLBF, 0);
    CHECK(bed_open(&b), "a runner");
    if (!b.runner)
        return tap_done();
    printf("# ranks run as %s\n", runner_account(b.runner));
    CHECK(runner_watch_add(b.runner, 0, on_event, &b, &err), "watching");
    for (; *tests; tests++)
        (*tests)(&b);
    bed_close(&b);
    dir_remove(dir);
    return tap_done();
}

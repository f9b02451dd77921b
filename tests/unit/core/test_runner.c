// SPDX-License-Identifier: Apache-2.0
// The runner against a bench that misbehaves. Facts about the machine are stubs here: two CPUs, one
// node. Needs python3 for the fakes; FAKES names their folder.
#include "core/admission/monitor.h"
#include "core/launch/supervisor_main.h"
#include "core/node/checkup.h"
#include "core/store/store.h"
#include "tests/unit/tap.h"

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
#include "core/launch/planner.h"
#include "core/launch/supervisor.h"
#include "core/os/processes.h"
#include "core/run/runner.h"
#include "core/store/db.h"
#include "tests/unit/core/dir.h"

static bool no_room;
static int deaf; // so many times recv fails

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
static struct monitor monitor;
static struct {
    bool disturbs;
    enum policy_action when_disturbing;
    int refusals; // so many checks refuse, then none
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

int monitor_check(struct monitor *a, const struct plan *p, bool force, struct admission *out,
                  struct err *err)
{
    (void)a, (void)p, (void)err;
    *out = (struct admission){.n = no_room || (node.refusals > 0 && !force)};
    out->list[0] = (struct blocker){.kind = no_room ? ADMIT_MEMORY : ADMIT_BUSY};
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

bool monitor_disturbs(struct monitor *a, struct blocker *b)
{
    (void)a;
    *b = (struct blocker){.kind = ADMIT_DISTURBING, .measured = 60, .limit = 25};
    snprintf(b->text, sizeof b->text, "user.slice waited");
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

int fingerprint_read(struct fingerprint *f, const struct topology *t, const char *root,
                     struct err *err)
{
    (void)t;
    (void)root;
    (void)err;
    *f = (struct fingerprint){0};
    facts_seal(&f->machine_class);
    facts_add(&f->config, "thp", "madvise");
    facts_seal(&f->config);
    return 0;
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
static enum change change;

static void make_machine(struct machine *m, enum change with)
{
    struct topology *t = &m->topology;
    *m = (struct machine){.hostname = "node1", .topology_xml = strdup(with ? "<now/>" : "<then/>")};
    *t = (struct topology){.n_cpus = 2, .n_nodes = 1};
    t->cpus = calloc(2, sizeof *t->cpus);
    t->nodes = calloc(1, sizeof *t->nodes);
    t->cpus[0] = (struct topo_cpu){.allowed = with != CPU_GONE};
    t->cpus[1] = (struct topo_cpu){.os = 1, .core = 1, .allowed = true};
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

static char dir[64], run_dir[96];
static struct machine machine;

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
static pid_t supervisor_pid(void)
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

static void on_progress(struct bed *b)
{
    struct err err;
    b->progresses++;
    if (b->cancel_at_progress && !b->canceled_ms) {
        b->canceled_ms = clock_mono_ms();
        CHECK(runner_cancel(b->runner, b->wait_for, &err) == 0, "cancel");
    }
    if (b->kill_at_progress && !b->canceled_ms) {
        b->canceled_ms = clock_mono_ms();
        CHECK(kill(supervisor_pid(), SIGKILL) == 0, "supervisor killed");
    }
    if (b->stop_at_progress)
        loop_stop(b->loop);
}

static void on_event(void *ctx, const struct run_event *e)
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

static void give_up(void *ctx, uint32_t events)
{
    struct bed *b = ctx;
    (void)events;
    loop_stop(b->loop);
}

// Until the final event of b->wait_for. A whole queue of 32 runs takes 10 s, on a busy machine much
// longer.
static void wait_final(struct bed *b)
{
    struct err err;
    struct loop_timer *limit = loop_timer_new(b->loop, give_up, b, &err);
    loop_timer_set(limit, 90000);
    if (!b->got_final)
        loop_run(b->loop, &err);
    loop_timer_free(limit);
}

static void behave(const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/fake_bench.behaviour", dir);
    FILE *f = fopen(path, "w");
    fprintf(f, "%s\n", text);
    fclose(f);
    chmod(path, 0644);
}

static bool bed_open(struct bed *b)
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

static void bed_close(struct bed *b)
{
    runner_free(b->runner);
    store_close(b->store);
    loop_free(b->loop);
}

static void quick_spec(struct spec *s)
{
    spec_init(s, BENCHMARK_LATENCY);
    snprintf(s->size, sizeof s->size, "1-4");
    s->timeout_s = 20;
}

static int64_t submit(struct bed *b)
{
    struct err err = {0};
    struct spec s;
    int64_t id = 0;
    bool again;
    quick_spec(&s);
    if (runner_submit(b->runner, &s, NULL, &id, &again, &err) < 0)
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

static int entries(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static void check_nothing_left(const char *what)
{
    CHECK(entries(run_dir) == 0, "%s: no directory is left", what);
    CHECK(proc_kill_below(0, 0) == 0, "%s: no process is left", what);
}

// Runs once with the behaviour; the caller calls run_fini.
static void run_once(struct bed *b, const char *behaviour, struct run *r)
{
    struct err err = {0};
    behave(behaviour);
    int64_t id = submit(b);
    wait_final(b);
    if (runner_run_get(b->runner, id, r, &err) < 0)
        printf("# %s\n", err.text);
}

static void test_good(struct bed *b)
{
    struct err err;
    struct run r = {0};
    struct matrix *m;
    struct rank_info *ranks;
    char *log;
    int n, n_ranks;
    run_once(b, "good", &r);
    CHECK(r.state == RUN_SUCCEEDED, "good: %s %s", run_state_names[r.state], r.error_text);
    CHECK(r.n_ranks == 2 && r.n_cells == 6 && r.phase_ms[PHASE_MEASURE] == 4, "its numbers");
    CHECK_STR(r.method, "prp4-v1", "its method");
    CHECK(strstr(r.conditions_json, "the load is 3"), "findings are conditions");
    CHECK(strstr(r.plan_json, "\"ranks\""), "the plan is kept");
    CHECK(b->in_order && b->states == 3 && b->progresses > 0, "queued, running, progress, over");
    CHECK(store_matrices_get(b->store, r.id, &m, &n, &err) == 0 && n == 1 &&
              matrix_at(&m[0], 1, 2)->v[CELL_MEDIAN] == 31 && m[0].col.values[2] == 4 << 20,
          "the matrix as it was sent");
    CHECK(store_ranks_get(b->store, r.id, &ranks, &n_ranks, &err) == 0 && n_ranks == 2, "ranks");
    CHECK(runner_log_get(b->runner, r.id, &log, &err) == 0 && strstr(log, "rank 1 of 2"), "log");
    store_matrices_free(m, n);
    free(ranks);
    free(log);
    run_fini(&r);
    check_nothing_left("good");
}

static const struct {
    const char *behaviour;
    enum err_code code;
    const char *text; // part of the reason
} bad[] = {
    {"text", ERR_INTERNAL, "should not"},
    {"no-hello", ERR_INTERNAL, "first record is not hello"},
    {"second-hello", ERR_INTERNAL, "second hello"},
    {"bad-nonce", ERR_INTERNAL, "nonce"},
    {"wrong-version", ERR_INTERNAL, "version 999"},
    {"wrong-benchmark", ERR_INTERNAL, "bandwidth"},
    {"wrong-ranks", ERR_INTERNAL, "3 ranks"},
    {"unasked-matrix", ERR_INTERNAL, "not requested"},
    {"matrix-twice", ERR_INTERNAL, "second matrix"},
    {"wrong-shape", ERR_INTERNAL, "2 x 4"},
    {"wrong-unit", ERR_INTERNAL, "not latency in ns"},
    {"cell-twice", ERR_INTERNAL, "twice"},
    {"out-of-range", ERR_INTERNAL, "outside"},
    {"negative", ERR_INTERNAL, "index"},
    {"nan", ERR_INTERNAL, "should not"},
    {"huge", ERR_INTERNAL, "range"},
    {"missing-cell", ERR_INTERNAL, "without a value"},
    {"wrong-count", ERR_INTERNAL, "counted 7 cells, 6 arrived"},
    {"rank-twice", ERR_INTERNAL, "rank 0 twice"},
    {"wrong-rank", ERR_INTERNAL, "rank 2 of 2"},
    {"missing-rank", ERR_INTERNAL, "1 of 2 ranks"},
    {"no-end", ERR_INTERNAL, "before its end"},
    {"after-end", ERR_INTERNAL, "after the end"},
    {"bad-end", ERR_NO_MEMORY_NODE, "not that much memory"},
    {"early-end", ERR_NO_MEMORY_NODE, "not that much memory"},
    {"exit", ERR_SYSTEM, "status 7"},
    {"signal 9", ERR_SYSTEM, "status"},
    {"garbage", ERR_INTERNAL, "should not"},
    {"endless-line", ERR_INTERNAL, "65536 bytes"},
};

static void test_bad(struct bed *b)
{
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct err err;
        struct run r = {0};
        struct matrix *m = NULL;
        int n = 0;
        run_once(b, bad[i].behaviour, &r);
        CHECK(r.state == RUN_FAILED && r.error == bad[i].code && strstr(r.error_text, bad[i].text),
              "%s: %s, %s", bad[i].behaviour, run_state_names[r.state], r.error_text);
        CHECK(store_matrices_get(b->store, r.id, &m, &n, &err) == 0 && n == 0 && r.n_cells == 0,
              "%s: nothing is stored as a result", bad[i].behaviour);
        store_matrices_free(m, n);
        run_fini(&r);
        check_nothing_left(bad[i].behaviour);
    }
}

static void test_placement(struct bed *b)
{
    struct run r = {0};
    run_once(b, "placement", &r);
    CHECK(r.state == RUN_SUCCEEDED && strstr(r.conditions_json, "ran on CPU 1 instead of 0") &&
              strstr(r.conditions_json, "on node 1 instead of 0"),
          "wrong placement is said loudly: %s", r.conditions_json);
    run_fini(&r);
    run_once(b, "half", &r);
    CHECK(strstr(r.conditions_json, "only 50.0 % of its memory on node 0"), "a share too");
    run_fini(&r);
}

static void test_noise(struct bed *b)
{
    struct err err;
    struct run r = {0};
    char *log = NULL;
    run_once(b, "noise", &r);
    CHECK(r.state == RUN_SUCCEEDED && runner_log_get(b->runner, r.id, &log, &err) == 0, "noise");
    CHECK(log && strstr(log, "ab\x1b[31mred\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9 end"),
          "log is text: %s", log);
    free(log);
    run_fini(&r);
}

static void test_cancel(struct bed *b, const char *behaviour)
{
    struct err err;
    struct run r = {0};
    b->cancel_at_progress = true;
    run_once(b, behaviour, &r);
    b->cancel_at_progress = false;
    CHECK(r.state == RUN_CANCELED, "%s: %s", behaviour, run_state_names[r.state]);
    CHECK(b->final_ms - b->canceled_ms < 2000, "%s: canceled in %d ms", behaviour,
          (int)(b->final_ms - b->canceled_ms));
    CHECK(runner_cancel(b->runner, r.id, &err) < 0 && err.code == ERR_CONFLICT, "only once");
    run_fini(&r);
    check_nothing_left(behaviour);
}

static void test_floods(struct bed *b)
{
    struct err err;
    struct run r = {0};
    char *log;
    struct spec s;
    int64_t id;
    bool again;
    b->cancel_at_progress = true;
    run_once(b, "flood-channel", &r);
    b->cancel_at_progress = false;
    CHECK(r.state == RUN_CANCELED, "a flood of progress can be canceled");
    run_fini(&r);
    behave("flood-stdout");
    quick_spec(&s);
    s.timeout_s = 1;
    CHECK(runner_submit(b->runner, &s, NULL, &id, &again, &err) == 0, "flood on stdout");
    b->wait_for = id;
    b->got_final = false;
    wait_final(b);
    CHECK(runner_run_get(b->runner, id, &r, &err) == 0 && r.state == RUN_FAILED &&
              r.error == ERR_TIMEOUT,
          "ends at its deadline: %s", r.error_text);
    CHECK(runner_log_get(b->runner, id, &log, &err) == 0 && strlen(log) <= SUPERVISOR_LOG_MAX &&
              strlen(log) > SUPERVISOR_LOG_MAX / 2 && strstr(log, "the rest was cut"),
          "its log is cut");
    free(log);
    run_fini(&r);
    check_nothing_left("floods");
}

static void test_supervisor_killed(struct bed *b)
{
    static const char *const names[] = {"hang", "hang-hard", "slow"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct run r = {0};
        b->kill_at_progress = true;
        run_once(b, names[i], &r);
        b->kill_at_progress = false;
        CHECK(r.state == RUN_INTERRUPTED && strstr(r.error_text, "supervisor exited without"),
              "%s, supervisor killed: %s", names[i], r.error_text);
        run_fini(&r);
        check_nothing_left(names[i]);
    }
}

// A supervisor whose report cannot be read must not wait for the daemon as that waits for it.
static void test_report_unread(struct bed *b)
{
    struct run r = {0};
    deaf = 1;
    run_once(b, "good", &r);
    CHECK(deaf == 0 && b->got_final && r.state == RUN_INTERRUPTED &&
              strstr(r.error_text, "cannot hear how the run ended"),
          "report unread: %s %s", run_state_names[r.state], r.error_text);
    run_fini(&r);
    check_nothing_left("report unread");
}

static bool wait_for_node(struct bed *b, struct spec *s, int refusals)
{
    struct err err = {0};
    bool again;
    node.refusals = refusals;
    int rc = runner_submit(b->runner, s, NULL, &b->wait_for, &again, &err);
    b->last_event = rc < 0 ? 0 : runner_event_id(b->runner, b->wait_for);
    b->got_final = false;
    return rc == 0;
}

static void test_busy_node(struct bed *b)
{
    struct err err = {0};
    struct spec s;
    int64_t id;
    bool again;
    behave("good");
    quick_spec(&s);
    node.refusals = 1;
    CHECK(runner_submit(b->runner, &s, NULL, &id, &again, &err) < 0 && err.code == ERR_BUSY &&
              runner_refusal(b->runner)->n == 1,
          "a node that is not free refuses: %s", err.text);
    struct run r = {0};
    s.queue_s = 60;
    CHECK(wait_for_node(b, &s, 3), "but a run may wait");
    b->stop_at_state = true;
    wait_final(b);
    b->stop_at_state = false;
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_QUEUED &&
              !strcmp(r.waiting, "CPU 0 is busy") && r.wait_until_ms > clock_wall_ms() + 50000,
          "it is queued and says why: %s", r.waiting);
    run_fini(&r);
    wait_final(b);
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_SUCCEEDED &&
              !*r.waiting,
          "and starts when the node is free");
    run_fini(&r);
    s.queue_s = 1;
    CHECK(wait_for_node(b, &s, 1 << 20), "one waits for a second");
    int64_t begin_ms = clock_mono_ms();
    wait_final(b);
    int64_t took_ms = clock_mono_ms() - begin_ms;
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_CANCELED &&
              r.error == ERR_TIMEOUT && strstr(r.error_text, "busy for 1 s: CPU 0 is busy") &&
              took_ms >= 900 && took_ms < 5000,
          "it is canceled then: %s", r.error_text);
    run_fini(&r);
    node.refusals = 0;
}

static void test_overtaking(struct bed *b)
{
    struct err err = {0};
    struct spec s;
    struct run r = {0};
    int64_t patient;
    behave("good");
    quick_spec(&s);
    s.queue_s = 600;
    CHECK(wait_for_node(b, &s, 1 << 20), "one waits");
    patient = b->wait_for;
    s.queue_s = 0;
    s.force = true;
    CHECK(wait_for_node(b, &s, 1 << 20), "one is forced");
    wait_final(b);
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_SUCCEEDED &&
              strstr(r.conditions_json, "busy_cpus was overruled: CPU 0 is busy") &&
              strstr(r.conditions_json, "while it ran, the hypervisor took 7 %"),
          "it does not wait for the first, and keeps what was overruled: %s", r.conditions_json);
    run_fini(&r);
    CHECK(runner_run_get(b->runner, patient, &r, &err) == 0 && r.state == RUN_QUEUED &&
              runner_cancel(b->runner, patient, &err) == 0,
          "which waits on");
    run_fini(&r);
    CHECK(monitor.begun == monitor.ended, "each run that began ended");
    node.refusals = 0;
}

static void test_disturbing(struct bed *b)
{
    struct err err = {0};
    struct spec s;
    struct run r = {0};
    behave("hang");
    quick_spec(&s);
    node.disturbs = true;
    CHECK(wait_for_node(b, &s, 0), "a run that makes others wait");
    wait_final(b);
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_FAILED &&
              r.error == ERR_BUSY &&
              strstr(r.error_text, "disturbed others: user.slice waited (limit 25 %)"),
          "is stopped: %s", r.error_text);
    run_fini(&r);
    check_nothing_left("after a run that was stopped");
    node.when_disturbing = POLICY_WARN;
    s.timeout_s = 3;
    CHECK(wait_for_node(b, &s, 0), "where it is only noted");
    wait_final(b);
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.error == ERR_TIMEOUT &&
              strstr(r.conditions_json, "\"disturbing\",\"severity\":\"notice\",\"rank\":null,"
                                        "\"text\":\"user.slice waited"),
          "it goes on, and keeps it: %s", r.conditions_json);
    run_fini(&r);
    node.when_disturbing = POLICY_REFUSE;
    node.disturbs = false;
}

static void begin_and_change(struct bed *b, const char *behaviour, enum change what)
{
    struct err err;
    behave(behaviour);
    CHECK(submit(b) > 0, "a run");
    b->stop_at_state = true;
    loop_run(b->loop, &err);
    b->stop_at_state = false;
    change = what;
}

// CPUs and memory that go while a run measures on them.
static void test_machine_changes(struct bed *b)
{
    static const struct {
        enum change change;
        const char *behaviour, *member, *says;
    } cases[] = {
        // While it measures: it is stopped, long before its time is over.
        {CPU_GONE, "hang", "cpus", "CPU 0 was taken out of the cpuset of the daemon during"},
        {MEMORY_GONE, "hang", "numa", "the memory of node 0 went off-line during"},
        // Just before its end: what it found does not count.
        {MEMORY_GONE, "good", "numa", "the memory of node 0 went off-line during"},
    };
    struct err err = {0};
    struct run r = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin_and_change(b, cases[i].behaviour, cases[i].change);
        int64_t begun_ms = clock_mono_ms();
        wait_final(b);
        CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_FAILED &&
                  r.error == ERR_UNAVAILABLE && !strcmp(r.error_member, cases[i].member) &&
                  strstr(r.error_text, cases[i].says) && clock_mono_ms() - begun_ms < 10000,
              "fails and says why: %s", r.error_text);
        CLEANUP_MEM char *xml = NULL;
        CHECK(store_topology_xml(b->store, b->wait_for, &xml, &err) == 0 &&
                  strcmp(xml, "<then/>") == 0,
              "what it was planned on is kept");
        run_fini(&r);
        check_nothing_left("after a run that lost its place");
        change = NOTHING;
    }
}

// What touches a run less than that is noted with it.
static void test_machine_notes(struct bed *b)
{
    static const struct {
        enum change change;
        const char *says;
    } cases[] = {
        {MEMORY_SHRUNK, "part of the memory of node 0 was taken away"},
        {CANNOT_READ, "whether CPUs or memory changed during the run is not known: no /sys"},
    };
    struct err err = {0};
    struct run r = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin_and_change(b, "good", cases[i].change);
        wait_final(b);
        CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_SUCCEEDED &&
                  strstr(r.conditions_json, cases[i].says),
              "noted: %s", r.conditions_json);
        run_fini(&r);
        change = NOTHING;
    }
    change = CANNOT_READ;
    struct spec s;
    int64_t id;
    bool again;
    quick_spec(&s);
    CHECK(runner_submit(b->runner, &s, NULL, &id, &again, &err) < 0 && err.code == ERR_SYSTEM,
          "nothing is planned on a machine that cannot be read: %s", err.text);
    change = NOTHING;
    CHECK(runner_look_at_machine(b->runner, &err) == 0, "it is as it was");
}

static void test_requests(struct bed *b)
{
    struct err err = {0};
    struct spec s;
    struct plan p = {0};
    CLEANUP_BUF struct buf line = BUF_INIT;
    struct admission now;
    int64_t id, first;
    bool again;
    quick_spec(&s);
    CHECK(runner_dry_run(b->runner, &s, &p, &line, &now, &err) == 0 && p.n_ranks == 2 &&
              strstr(buf_text(&line), "--bind=0:0,") && strstr(buf_text(&line), "--size=1-4"),
          "dry run: %s", buf_text(&line));
    plan_fini(&p);
    no_room = true;
    CHECK(runner_submit(b->runner, &s, NULL, &id, &again, &err) < 0 &&
              err.code == ERR_NO_MEMORY_NODE,
          "no room, no run");
    no_room = false;
    snprintf(s.cpus, sizeof s.cpus, "99");
    CHECK(runner_submit(b->runner, &s, NULL, &id, &again, &err) < 0 && err.code == ERR_INVALID,
          "a plan that cannot be");
    behave("hang");
    first = submit(b);
    b->stop_at_progress = true;
    wait_final(b); // stops at the first progress
    b->stop_at_progress = false;
    struct run r = {0};
    CHECK(runner_run_get(b->runner, first, &r, &err) == 0 && r.state == RUN_RUNNING &&
              strcmp(r.progress.phase, "measure") == 0,
          "live progress");
    run_fini(&r);
    quick_spec(&s);
    CHECK(runner_submit(b->runner, &s, "k", &id, &again, &err) == 0 && !again, "one waits");
    int64_t same;
    CHECK(runner_submit(b->runner, &s, "k", &same, &again, &err) == 0 && again && same == id,
          "the same key, the same run");
    CHECK(runner_cancel(b->runner, id, &err) == 0 && runner_run_get(b->runner, id, &r, &err) == 0 &&
              r.state == RUN_CANCELED,
          "what waits is canceled at once");
    run_fini(&r);
    int n = 0;
    while (n <= RUNNER_QUEUE_MAX && runner_submit(b->runner, &s, NULL, &id, &again, &err) == 0)
        n++;
    CHECK(n == RUNNER_QUEUE_MAX && err.code == ERR_QUEUE_FULL, "the queue has an end");
}

// bed_close in the middle of the run that hangs, with the queue full: what a stopped daemon leaves.
static void test_restart(struct bed *b)
{
    struct err err;
    struct run r = {0};
    int64_t running = b->wait_for, n = 0, id = 0;
    bed_close(b);
    CHECK(entries(run_dir) == 0, "stopping in the middle leaves no directory");
    behave("good");
    if (!bed_open(b))
        return;
    runner_watch_add(b->runner, 0, on_event, b, &err);
    CHECK(runner_run_get(b->runner, running, &r, &err) == 0 && r.state == RUN_INTERRUPTED,
          "the run that went on is interrupted: %s", r.error_text);
    run_fini(&r);
    CHECK(store_queue_length(b->store, &n, &err) == 0 && n == RUNNER_QUEUE_MAX,
          "the queue is there");
    store_run_next_queued(b->store, 0, &id, &err);
    b->wait_for = id + RUNNER_QUEUE_MAX - 1;
    for (int i = 0; i < 5 && !b->got_final; i++) // one limit is for one run, these are 32
        wait_final(b);
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_SUCCEEDED,
          "and is worked off to the last");
    run_fini(&r);
}

static void test_orphan(struct bed *b)
{
    struct run r = {0};
    run_once(b, "orphan", &r);
    CHECK(r.state == RUN_SUCCEEDED, "orphan: %s", r.error_text);
    run_fini(&r);
    check_nothing_left("orphan");
}

// The disk is full when the result is there: it waits, and is stored when there is room.
static void test_disk_full(struct bed *b)
{
    struct err err = {0};
    struct run r = {0};
    behave("slow 0.02");
    int64_t id = submit(b);
    b->stop_at_progress = true;
    wait_final(b);
    b->stop_at_progress = false;
    sq_exec(b->store->db, "PRAGMA query_only=1", &err); // refuses to write, as a full disk does
    // A round more when all are gone: the runner must have seen it.
    for (bool left = true; left;) {
        left = proc_kill_below(0, 0) > 0;
        struct loop_timer *t = loop_timer_new(b->loop, give_up, b, &err);
        loop_timer_set(t, 20);
        loop_run(b->loop, &err);
        loop_timer_free(t);
    }
    CHECK(runner_run_get(b->runner, id, &r, &err) == 0 && r.state == RUN_RUNNING && !b->got_final,
          "it stays running until it is stored");
    run_fini(&r);
    sq_exec(b->store->db, "PRAGMA query_only=0", &err);
    CHECK(runner_run_get(b->runner, id, &r, &err) == 0 && r.state == RUN_SUCCEEDED && b->got_final,
          "and the next request stores it: %s", run_state_names[r.state]);
    run_fini(&r);
}

static void set_up(void)
{
    char bench[96], target[300], mpirun[300];
    const char *fakes = getenv("FAKES");
    dir_make(dir);
    chmod(dir, 0711);
    snprintf(run_dir, sizeof run_dir, "%s/run", dir);
    snprintf(bench, sizeof bench, "%s/fake_bench", dir);
    snprintf(target, sizeof target, "%s/fake_bench.py", fakes ? fakes : "tests/fakes");
    snprintf(mpirun, sizeof mpirun, "%s/fake_mpirun.py", fakes ? fakes : "tests/fakes");
    if (symlink(target, bench) < 0)
        abort();
    setenv("NUMAPROBE_BENCH", bench, 1);
    if (!getenv("NUMAPROBE_MPIRUN"))
        setenv("NUMAPROBE_MPIRUN", mpirun, 1);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    log_init(LOG_LVL_ERROR, 0);
}

int main(int argc, char **argv)
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
    struct runner_watch *w = runner_watch_add(b.runner, 0, on_event, &b, &err);
    CHECK(w, "watching");
    test_good(&b);
    test_bad(&b);
    test_placement(&b);
    test_noise(&b);
    test_orphan(&b);
    test_disk_full(&b);
    test_cancel(&b, "hang");
    test_cancel(&b, "hang-hard");
    test_floods(&b);
    test_supervisor_killed(&b);
    test_report_unread(&b);
    test_busy_node(&b);
    test_overtaking(&b);
    test_disturbing(&b);
    test_machine_changes(&b);
    test_machine_notes(&b);
    test_requests(&b);
    test_restart(&b);
    bed_close(&b);
    dir_remove(dir);
    return tap_done();
}

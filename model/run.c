// SPDX-License-Identifier: Apache-2.0
// Texts that come from outside (label, node, method) are checked here, in one place for
// requests and imports.
#include "model/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "model/nodeset.h"

const char *const run_state_names[RUN_STATES] = {"queued", "running",  "succeeded",
                                                 "failed", "canceled", "interrupted"};

int run_state_find(const char *name)
{
    for (int i = 0; i < RUN_STATES; i++)
        if (strcmp(run_state_names[i], name) == 0)
            return i;
    return -1;
}

bool run_state_final(enum run_state s)
{
    return s != RUN_QUEUED && s != RUN_RUNNING;
}

int run_label_check(const char *label, struct err *err)
{
    size_t n = strlen(label);
    if (n > RUN_LABEL_MAX || !utf8_all_shown(label) ||
        (n && (label[0] == ' ' || label[n - 1] == ' ')))
        return err_set(err, ERR_INVALID, "label",
                       "must be at most %d bytes of printable text without blanks at its ends",
                       RUN_LABEL_MAX);
    return 0;
}

int run_node_check(const char *node, struct err *err)
{
    _Static_assert(sizeof((struct run *)NULL)->node == NODESET_NAME_ROOM, "a name fits");
    return nodeset_name_check(node, NULL) == 0
               ? 0
               : err_set(err, ERR_INVALID, "node", "%s", NODESET_NAME_RULE);
}

int run_method_check(const char *method, struct err *err)
{
    size_t n = strspn(method, "abcdefghijklmnopqrstuvwxyz0123456789.-_");
    if (method[n] || n >= sizeof((struct run *)NULL)->method)
        return err_set(err, ERR_INVALID, "method",
                       "must be a name such as prp4-v1: at most 39 lower-case letters, digits, "
                       "'.', '-' and '_'");
    return 0;
}

void run_fini(struct run *r)
{
    free(r->plan_json);
    free(r->conditions_json);
    *r = (struct run){0};
}

// Of an interrupted run only the next start of the daemon is known. Other ends before the start, or
// after more than any run takes, are of versions that took both from the wall clock.
double run_seconds(enum run_state state, int64_t started_ms, int64_t finished_ms)
{
    const int64_t most_ms = (int64_t)RUN_SECONDS_MAX * 1000;
    return run_state_final(state) && state != RUN_INTERRUPTED && started_ms &&
                   finished_ms >= started_ms && finished_ms - started_ms <= most_ms
               ? (double)(finished_ms - started_ms) / 1000
               : NAN;
}

struct run_age run_age_at(int64_t now_ms, int64_t measured_ms, int64_t most_s)
{
    int64_t s = (now_ms - measured_ms) / 1000;
    bool ahead = s < -RUN_AHEAD_S;
    return (struct run_age){s < 0 ? 0 : s, ahead, most_s && (ahead || s > most_s)};
}

static void write_times(const struct run *r, struct jsonw *w)
{
    jsonw_time(w, "created", r->created_ms);
    jsonw_time(w, "started", r->started_ms);
    jsonw_time(w, "finished", r->finished_ms);
    jsonw_time(w, "measured", r->measured_ms);
    jsonw_fixed(w, "seconds", run_seconds(r->state, r->started_ms, r->finished_ms), 3);
    phases_write_json(r->phase_ms, w, "phases_ms");
}

static void write_error(const struct run *r, struct jsonw *w)
{
    if (r->error == ERR_NONE) {
        jsonw_null(w, "error");
        return;
    }
    jsonw_object(w, "error");
    jsonw_text(w, "type", err_info(r->error)->slug);
    jsonw_text(w, "member", *r->error_member ? r->error_member : NULL);
    jsonw_text(w, "text", r->error_text);
    jsonw_end(w);
}

static void run_write_progress(const struct run *r, struct jsonw *w)
{
    if (r->state != RUN_RUNNING || !*r->progress.phase) {
        jsonw_null(w, "progress");
        return;
    }
    jsonw_object(w, "progress");
    jsonw_text(w, "phase", r->progress.phase);
    jsonw_i64(w, "done", r->progress.done);
    jsonw_i64(w, "total", r->progress.total);
    jsonw_i64(w, "eta_ms", r->progress.eta_ms);
    jsonw_end(w);
}

static void write_waiting(const struct run *r, struct jsonw *w)
{
    if (r->state != RUN_QUEUED || !*r->waiting) {
        jsonw_null(w, "waiting");
        return;
    }
    jsonw_object(w, "waiting");
    jsonw_text(w, "text", r->waiting);
    jsonw_time(w, "until", r->wait_until_ms);
    jsonw_end(w);
}

const char *run_benchmark(const struct run *r)
{
    return *r->unreadable[RUN_SPEC] ? r->benchmark : benchmarks[r->spec.benchmark].name;
}

static const char *const part_members[RUN_PARTS] = {"spec", "plan", "conditions", "phases_ms"};

static int check_part(const struct run *r, enum run_part part, const char *what, struct err *err)
{
    return !*r->unreadable[part] ? 0
                                 : err_set(err, ERR_CONFLICT, "",
                                           "the stored %s of run %" PRId64 " cannot be read: %s",
                                           what, r->id, r->unreadable[part]);
}

int run_check_spec(const struct run *r, struct err *err)
{
    return check_part(r, RUN_SPEC, "parameters", err);
}

int run_check_parts(const struct run *r, struct err *err)
{
    if (run_check_spec(r, err) < 0)
        return -1;
    for (int part = 0; part < RUN_PARTS; part++)
        if (check_part(r, part, part_members[part], err) < 0)
            return -1;
    return 0;
}

static void run_write_spec(const struct run *r, struct jsonw *w)
{
    if (!*r->unreadable[RUN_SPEC]) {
        spec_write_json(&r->spec, w, "spec");
        return;
    }
    jsonw_object(w, "spec");
    jsonw_text(w, "benchmark", r->benchmark);
    jsonw_end(w);
}

static void write_unreadable(const struct run *r, struct jsonw *w)
{
    int n = 0;
    for (int i = 0; i < RUN_PARTS; i++) {
        if (!*r->unreadable[i])
            continue;
        if (!n++)
            jsonw_array(w, "unreadable");
        jsonw_object(w, NULL);
        jsonw_text(w, "member", part_members[i]);
        jsonw_text(w, "text", r->unreadable[i]);
        jsonw_end(w);
    }
    if (n)
        jsonw_end(w);
}

void run_write_json(const struct run *r, struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    jsonw_i64(w, "id", r->id);
    if (r->seq)
        jsonw_i64(w, "seq", r->seq);
    else
        jsonw_null(w, "seq");
    jsonw_text(w, "state", run_state_names[r->state]);
    jsonw_text(w, "node", r->node);
    jsonw_text(w, "source", r->imported ? "imported" : "measured");
    jsonw_text(w, "label", *r->label ? r->label : NULL);
    jsonw_text(w, "method", *r->method ? r->method : NULL);
    jsonw_i64(w, "ranks", r->n_ranks);
    jsonw_i64(w, "cells", r->n_cells);
    write_times(r, w);
    write_error(r, w);
    run_write_progress(r, w);
    write_waiting(r, w);
    jsonw_text(w, "hardware_hash", *r->class_hash ? r->class_hash : NULL);
    jsonw_text(w, "config_hash", *r->config_hash ? r->config_hash : NULL);
    jsonw_text(w, "topology_hash", *r->topology_hash ? r->topology_hash : NULL);
    run_write_spec(r, w);
    jsonw_raw(w, "plan", r->plan_json ? r->plan_json : "null");
    jsonw_raw(w, "conditions", r->conditions_json ? r->conditions_json : "[]");
    write_unreadable(r, w);
    jsonw_end(w);
}

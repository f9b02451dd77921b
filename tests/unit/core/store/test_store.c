// SPDX-License-Identifier: Apache-2.0
#include "core/store/store.h"
#include "tests/unit/tap.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/store/baselines.h"
#include "core/store/db.h"
#include "core/store/summaries.h"
#include "tests/unit/core/dir.h"

static char dir[64];

static void make_spec(struct spec *s, const char *note)
{
    spec_init(s, BENCHMARK_LATENCY);
    snprintf(s->note, sizeof s->note, "%s", note);
}

static void make_print(struct fingerprint *f)
{
    *f = (struct fingerprint){0};
    facts_add(&f->machine_class, "cpu_model", "Test CPU");
    facts_add(&f->config, "thp_enabled", "madvise");
    facts_seal(&f->machine_class);
    facts_seal(&f->config);
}

static int64_t submit(struct store *s, const char *note)
{
    struct err err;
    struct spec spec;
    int64_t id = 0;
    bool again;
    make_spec(&spec, note);
    return store_run_insert(s, &spec, "node1", NULL, &id, &again, &err) < 0 ? -1 : id;
}

static int start(struct store *s, int64_t id)
{
    struct err err;
    struct fingerprint f;
    make_print(&f);
    return store_run_started(s, id, "{\"ranks\":[]}", "[\"a note\"]", &f, "<topology/>", &err);
}

static void test_insert(struct store *s)
{
    struct err err = {0};
    struct spec spec;
    int64_t id = 0, other = 0, n = 0;
    bool again = true;
    make_spec(&spec, "first");
    CHECK(store_run_insert(s, &spec, "node1", "key-1", &id, &again, &err) == 0 && !again, "insert");
    CHECK(store_run_insert(s, &spec, "node1", "key-1", &other, &again, &err) == 0 && again &&
              other == id,
          "the same key and spec give the same run");
    make_spec(&spec, "second");
    CHECK(store_run_insert(s, &spec, "node1", "key-1", &other, &again, &err) < 0 &&
              err.code == ERR_CONFLICT,
          "the same key with another spec is a conflict");
    CHECK_STR(err.member, "Idempotency-Key", "and names the key");
    CHECK(store_queue_length(s, &n, &err) == 0 && n == 1, "one waits");
    CHECK(store_run_next_queued(s, 0, &other, &err) == 1 && other == id, "and is the next");
    struct run r = {0};
    CHECK(store_run_get(s, id, &r, &err) == 0 && r.state == RUN_QUEUED && r.seq == 0, "read back");
    CHECK_STR(r.spec.note, "first", "with its spec");
    CHECK_STR(r.node, "node1", "and node");
    run_fini(&r);
    CHECK(store_run_get(s, 999, &r, &err) < 0 && err.code == ERR_NOT_FOUND, "no run 999");
    CHECK(store_run_delete(s, id, &err) < 0 && err.code == ERR_CONFLICT,
          "a waiting run is not deleted");
}

static void fill(struct matrix *m, struct cell *want)
{
    static const double samples[] = {98.5, 98.6, 98.6, 131, 132.5};
    cell_clear(want);
    for (int f = 0; f < CELL_FIELDS; f++)
        want->v[f] = cell_fields[f].kind == CELL_IS_COUNT   ? 11 + f
                     : cell_fields[f].kind == CELL_IS_SHARE ? 0.9876
                                                            : 98.123 + f;
    want->v[CELL_N] = COUNT_OF(samples);
    want->v[CELL_MIN] = samples[0];
    sketch_of(&want->sketch, samples, COUNT_OF(samples));
    for (int r = 0; r < m->row.n; r++)
        for (int c = 0; c < m->col.n; c++)
            *matrix_at(m, r, c) = *want;
    matrix_at(m, 1, 2)->sketch.size = 0;
    matrix_at(m, 1, 2)->v[CELL_OVERLAP] = NAN;
    for (int c = 0; c < m->col.n; c++)
        m->col.values[c] = 1 << (20 + c);
    m->row.values[1] = 1;
    snprintf(m->row.name, sizeof m->row.name, "rank");
    snprintf(m->col.name, sizeof m->col.name, "working_set");
    snprintf(m->col.unit, sizeof m->col.unit, "bytes");
}

static void check_matrix(struct store *s, int64_t id, const struct cell *want)
{
    struct err err;
    struct matrix *list;
    int n;
    CHECK(store_matrices_get(s, id, &list, &n, &err) == 0 && n == 1, "one matrix");
    CHECK_STR(list[0].name, "concurrent", "its name");
    CHECK(list[0].row.n == 2 && list[0].col.n == 3 && list[0].col.values[2] == 1 << 22, "its axes");
    CHECK_STR(list[0].col.unit, "bytes", "and units");
    for (int f = 0; f < CELL_FIELDS; f++)
        CHECK(matrix_at(&list[0], 0, 1)->v[f] == want->v[f], "field %s comes back exactly",
              cell_fields[f].name);
    CHECK(isnan(matrix_at(&list[0], 1, 2)->v[CELL_OVERLAP]), "what is not known stays so");
    struct histogram h;
    CHECK(memcmp(&matrix_at(&list[0], 0, 1)->sketch, &want->sketch, sizeof want->sketch) == 0 &&
              cell_histogram(matrix_at(&list[0], 0, 1), &h) && h.n == 5,
          "its distribution too");
    CHECK(!cell_histogram(matrix_at(&list[0], 1, 2), &h), "none stays none");
    store_matrices_free(list, n);
}

static void check_ranks(struct store *s, int64_t id)
{
    struct err err;
    struct rank_info *ranks;
    int n;
    CHECK(store_ranks_get(s, id, &ranks, &n, &err) == 0 && n == 2, "two ranks");
    CHECK(ranks[1].rank == 1 && ranks[1].cpu == 5 && ranks[1].n_nodes == 1 &&
              ranks[1].nodes[0].pages == 512 && ranks[1].address == 0x7f0000001000,
          "with all that they told");
    free(ranks);
}

static void test_result(struct store *s)
{
    struct err err = {0};
    struct matrix m;
    struct cell want;
    int64_t id = 1;
    CHECK_INT(matrix_init(&m, "concurrent", "latency", "ns", 2, 3, &err), 0, "a matrix");
    fill(&m, &want);
    struct rank_info ranks[2] = {{.rank = 0, .mem_share = 1},
                                 {.rank = 1,
                                  .cpu = 5,
                                  .mem_share = 0.5,
                                  .n_nodes = 1,
                                  .nodes = {{0, 512}},
                                  .address = 0x7f0000001000}};
    CHECK(start(s, id) == 0 && start(s, id) < 0, "started once");
    double phases[PHASES] = {1.5, 2, 3, 4, 5};
    struct run_result r = {.state = RUN_SUCCEEDED,
                           .method = "prp4-v1",
                           .phase_ms = phases,
                           .matrices = &m,
                           .n_matrices = 1,
                           .ranks = ranks,
                           .n_ranks = 2,
                           .log = "hello\n"};
    CHECK_INT(store_run_finished(s, id, &r, &err), 0, "finished: %s", err.text);
    CHECK(store_run_finished(s, id, &r, &err) < 0 && err.code == ERR_CONFLICT, "only once");
    struct run got = {0};
    CHECK(store_run_get(s, id, &got, &err) == 0 && got.state == RUN_SUCCEEDED && got.seq == 1 &&
              got.n_cells == 6 && got.n_ranks == 2 && got.phase_ms[0] == 1.5 && got.finished_ms,
          "the run says so");
    CHECK_STR(got.conditions_json, "[\"a note\"]", "conditions of the start stay");
    char *text;
    CHECK(store_fingerprint_json(s, got.class_hash, &text, &err) == 0 && strstr(text, "Test CPU"),
          "fingerprint by hash");
    free(text);
    run_fini(&got);
    CHECK(store_log_get(s, id, &text, &err) == 0 && strcmp(text, "hello\n") == 0, "log");
    free(text);
    check_matrix(s, id, &want);
    check_ranks(s, id);
    matrix_fini(&m);
}

static void count(void *ctx, const struct run *r)
{
    int64_t *last = ctx;
    *last = r->id;
}

// Asked before each write too, so that a reply kept too long would show.
static int64_t feed_last(struct store *s)
{
    struct store_feed feed;
    struct err err;
    return store_feed(s, &feed, &err) < 0 ? -1 : feed.last;
}

static void test_list_and_delete(struct store *s)
{
    struct err err;
    int64_t last = 0, n, a = submit(s, "a"), b = submit(s, "b");
    bool more;
    struct run_filter f = {.state = -1, .limit = 2};
    CHECK(store_run_list(s, &f, count, &last, &more, &err) == 0 && last == a && more,
          "newest first, and there is more");
    f.before_id = a;
    CHECK(store_run_list(s, &f, count, &last, &more, &err) == 0 && last == 1 && !more,
          "from the cursor on");
    f = (struct run_filter){.state = RUN_QUEUED, .limit = 200, .since_ms = clock_wall_ms() + 9999};
    last = 0;
    CHECK(store_run_list(s, &f, count, &last, &more, &err) == 0 && last == 0, "none in the future");
    CHECK_INT(feed_last(s), 1, "the feed's last");
    CHECK(start(s, a) == 0 &&
              sqlite3_exec(s->db, "UPDATE run SET started_ms = started_ms + 31536000000", NULL,
                           NULL, NULL) == SQLITE_OK,
          "a run begins while the clock is ahead");
    CHECK(store_run_interrupt_all(s, "power", &n, &err) == 0 && n == 1, "what ran is interrupted");
    CHECK_INT(feed_last(s), 2, "and the feed has it");
    struct run r;
    CHECK(store_run_get(s, a, &r, &err) == 0 && r.state == RUN_INTERRUPTED && r.seq == 2, "seq 2");
    CHECK(r.started_ms > clock_wall_ms() && r.finished_ms == r.started_ms,
          "it ended when it started at the earliest");
    run_fini(&r);
    CHECK(store_run_delete(s, a, &err) == 0 && store_run_delete(s, 1, &err) == 0, "deleted");
    struct run_result canceled = {.state = RUN_CANCELED, .error = ERR_CONFLICT, .error_text = "x"};
    CHECK(store_run_finished(s, b, &canceled, &err) == 0 && store_run_get(s, b, &r, &err) == 0 &&
              r.seq == 3,
          "seq goes on after deletions");
    CHECK_INT(feed_last(s), 3, "in the feed too");
    run_fini(&r);
    sqlite3_stmt *q;
    sqlite3_prepare_v2(s->db,
                       "SELECT (SELECT count(*) FROM cell)+(SELECT count(*) FROM matrix)+"
                       "(SELECT count(*) FROM rank)+(SELECT count(*) FROM log)",
                       -1, &q, NULL);
    CHECK(sqlite3_step(q) == SQLITE_ROW && sqlite3_column_int(q, 0) == 0, "no row is left of them");
    sqlite3_finalize(q);
}

static int64_t ask(struct store *s, const char *sql)
{
    struct err err;
    int64_t n = -1;
    return sq_number(s->db, sql, &n, &err) < 0 ? -1 : n;
}

static void test_summary(struct store *s, int64_t id)
{
    struct summary_values v CLEANUP(summary_values_fini) = {0};
    struct metric list[] = {{"latency.local.dram.median_ns", "ns", 98.1234, 97, NAN},
                            {"latency.disturbed_ratio", "", 0.083, NAN, NAN}};
    struct run_metrics put = {1, "pages=4k", list, 1};
    struct summary got;
    struct err err = {0};
    int64_t n = 0;
    CHECK(store_run_metrics(s, id, &put, &err) == 0 &&
              store_summary_get(s, id, &got, &v, &err) == 0 && isnan(got.disturbed),
          "a summary of a run whose disturbed samples are not known");
    CHECK(got.id == id && got.seq && got.state == RUN_SUCCEEDED && got.imported && !got.forced &&
              got.metrics_version == 1 && got.measured_ms == 1700000000000 &&
              strcmp(got.node, "node7") == 0 && strcmp(got.label, "before") == 0 &&
              strcmp(got.benchmark, "latency") == 0 && strcmp(got.variant, "pages=4k") == 0,
          "the run's members");
    CHECK(v.n == 1 && !v.pending && strcmp(v.list[0].name, list[0].name) == 0 &&
              strcmp(v.list[0].unit, "ns") == 0 && v.list[0].value == 98.123 &&
              v.list[0].lo == 97 && isnan(v.list[0].hi),
          "and its metrics");
    put.n = 2;
    CHECK(store_run_metrics(s, id, &put, &err) == 0 &&
              store_summary_get(s, id, &got, &v, &err) == 0 && v.n == 2 && got.disturbed == 0.083,
          "how much was disturbed is one of them");
    CHECK(store_summary_count(s, id, &n, &err) == 0 && n == 2, "counted");
    CHECK(store_summary_get(s, 999, &got, &v, &err) < 0 && err.code == ERR_NOT_FOUND, "%s",
          err.text);
}

// The only change after `seq`; NULL: there are none, or more.
static const struct summary_note *note_after(struct store *s, int64_t id, int64_t seq)
{
    static struct summary_note note;
    struct store_change list[9];
    struct err err;
    int n = 0;
    return store_run_changes(s, seq, list, COUNT_OF(list), &n, &err) == 0 && n == 1 &&
                   list[0].note && list[0].id == id &&
                   store_note_get(s, id, list[0].seq, &note, &err) == 0
               ? &note
               : NULL;
}

static int64_t feed_end(struct store *s)
{
    struct store_feed feed = {.last = -1};
    struct err err;
    store_feed(s, &feed, &err);
    return feed.last == store_last_seq(s) ? feed.last : -1;
}

// Labels and baselines that a run gets after it has finished have numbers in the feed.
static void test_notes(struct store *s, int64_t id)
{
    struct err err = {0};
    const struct baseline b = {.name = "b", .n = 1, .runs = {id}};
    int64_t end = feed_end(s);
    CHECK_INT(store_run_label(s, id, "before", &err), 0, "the label that it has");
    CHECK_INT(feed_end(s), end, "is no news");
    CHECK_INT(store_run_label(s, id, "noted", &err), 0, "another one");
    CHECK_INT(feed_end(s), end + 1, "takes a number of the feed");
    const struct summary_note *note = note_after(s, id, end);
    CHECK(note && note->seq == end + 1 && note->run_seq < end && note->run_seq > 0 &&
              note->run == id && strcmp(note->label, "noted") == 0 && !note->baseline,
          "a note says which");
    CHECK_INT(store_run_label(s, id, "", &err), 0, "the label goes");
    note = note_after(s, id, end);
    CHECK(note && note->seq == end + 2 && !*note->label, "and only the newest note is left");
    CHECK_INT(store_baseline_put(s, &b, &err), 0, "a baseline: %s", err.text);
    note = note_after(s, id, end);
    CHECK(note && note->seq > end + 2 && note->baseline && note->seq == feed_end(s), "is noted");
    end = feed_end(s);
    CHECK_INT(store_baseline_put(s, &b, &err), 0, "the same again");
    note = note_after(s, id, end);
    CHECK(note && note->baseline && note->seq == feed_end(s), "holds");
    CHECK_INT(store_baseline_delete(s, "b", &err), 0, "and goes");
    note = note_after(s, id, end);
    CHECK(note && !note->baseline && note->seq == feed_end(s), "which is noted too");
    CHECK(store_run_label(s, 999, "x", &err) < 0 && note_after(s, id, end), "no other note");
}

static void test_import(struct store *s)
{
    struct err err = {0};
    struct spec spec;
    struct run got = {0};
    struct metric metrics[] = {{"latency.local.dram.median_ns", "ns", 98.1234, 97, NAN},
                               {"contention.max_ratio", "", 1.5, NAN, NAN}};
    struct run_result result = {.state = RUN_SUCCEEDED, .metrics = {1, "pages=4k", metrics, 2}};
    struct run_import import = {&spec, "node7", "before", 1700000000000, &result};
    int64_t id = 0, other = 0;
    bool again;
    make_spec(&spec, "imported");
    CHECK_INT(store_runs_import(s, &import, 1, &id, &again, &err), 0, "imported: %s", err.text);
    CHECK(store_run_get(s, id, &got, &err) == 0 && got.state == RUN_SUCCEEDED && got.imported &&
              got.measured_ms == 1700000000000 && got.seq,
          "whole, with its date");
    CHECK_STR(got.node, "node7", "its node");
    CHECK_STR(got.label, "before", "its label");
    run_fini(&got);
    CHECK(ask(s, "SELECT value_milli FROM metric WHERE lo_milli = 97000 AND hi_milli IS NULL") ==
              98123,
          "metrics in thousandths");
    CHECK(ask(s, "SELECT count(*) FROM history WHERE variant = 'pages=4k'") == 2, "in two series");
    CHECK_INT(store_run_without_metrics(s, 1, &other, &err), 0, "no run lacks metrics");
    CHECK(store_run_without_metrics(s, 2, &other, &err) == 1 && other == id, "of the next version");
    result.metrics.n = 1;
    snprintf(metrics[0].unit, sizeof metrics[0].unit, "cycles");
    CHECK(store_run_metrics(s, id, &result.metrics, &err) == 0 &&
              ask(s, "SELECT count(*) FROM metric") == 1,
          "metrics are replaced");
    CHECK(ask(s, "SELECT count(*) FROM series WHERE unit = 'cycles'") == 1,
          "and a series takes the unit of today");
    struct run_filter f = {.state = -1, .limit = 9, .node = "node7", .label = "before"};
    bool more;
    other = 0;
    CHECK(store_run_list(s, &f, count, &other, &more, &err) == 0 && other == id, "found by label");
    CHECK(store_run_label(s, id, "", &err) == 0 &&
              store_run_list(s, &f, count, &other, &more, &err) == 0 && !more,
          "the label is taken away");
    CHECK(store_run_label(s, id, "before", &err) == 0, "and comes back");
    test_summary(s, id);
    test_notes(s, id);
    CHECK(store_run_label(s, 999, "x", &err) < 0 && err.code == ERR_NOT_FOUND, "no run 999");
    CHECK(store_run_delete(s, id, &err) == 0 && ask(s, "SELECT count(*) FROM metric") == 0 &&
              ask(s, "SELECT count(*) FROM note") == 0,
          "metrics and notes go with their run");
}

static void test_imports_together(struct store *s)
{
    struct err err = {0};
    struct spec spec;
    struct rank_info twice[2] = {{.rank = 3}, {.rank = 3}};
    struct run_result good = {.state = RUN_FAILED, .finished_ms = 1700000009000};
    struct run_result bad = {.state = RUN_SUCCEEDED, .ranks = twice, .n_ranks = 2};
    struct run_import list[] = {{&spec, "a1", "", 1700000000000, &good, .key = "k1"},
                                {&spec, "a2", "", 1700000000000, &bad, .key = "k2"}};
    int64_t ids[2], before = ask(s, "SELECT count(*) FROM run"), found = 0;
    bool again[2];
    make_spec(&spec, "together");
    CHECK(store_runs_import(s, list, 2, ids, again, &err) < 0 &&
              ask(s, "SELECT count(*) FROM run") == before,
          "one cannot be stored, so none is: %s", err.text);
    bad.n_ranks = 1;
    CHECK(store_runs_import(s, list, 2, ids, again, &err) == 0 && !again[0] && !again[1],
          "both are stored");
    CHECK(store_runs_import(s, list, 2, ids, again, &err) == 0 && again[0] && again[1] &&
              ask(s, "SELECT count(*) FROM run") == before + 2,
          "once");
    CHECK(store_import_find(s, &list[1], &found, &err) == 1 && found == ids[1], "found by its key");
    struct run got CLEANUP(run_fini) = {0};
    CHECK(store_run_get(s, ids[0], &got, &err) == 0 && got.state == RUN_FAILED &&
              got.finished_ms == 1700000009000 && got.imported,
          "a failed one too, with its times");
    list[1].key = "k3";
    CHECK_INT(store_import_find(s, &list[1], &found, &err), 0, "another content is not known");
    for (int i = 0; i < 2; i++)
        CHECK_INT(store_run_delete(s, ids[i], &err), 0, "deleted");
    CHECK(store_runs_import(s, list, 1, ids, again, &err) == 0 && !again[0],
          "what was deleted may come again");
    CHECK_INT(store_run_delete(s, ids[0], &err), 0, "deleted");
}

static int listed(struct store *s, int64_t since_ms, int64_t until_ms)
{
    struct err err;
    struct run_filter f = {.state = -1, .since_ms = since_ms, .until_ms = until_ms};
    int64_t first = ask(s, "SELECT count(*) FROM run"), last = 0;
    bool more;
    int n = 0;
    for (f.limit = 1; n <= first; n++, f.before_id = last) {
        last = 0;
        if (store_run_list(s, &f, count, &last, &more, &err) < 0 || !last)
            return n;
    }
    return -1;
}

static void put_at(struct store *s, int64_t created_ms)
{
    struct err err;
    char text[160];
    snprintf(text, sizeof text,
             "INSERT INTO run (state,benchmark,node,created_ms,spec) VALUES "
             "('queued','latency','n',%lld,'{\"benchmark\":\"latency\"}')",
             (long long)created_ms);
    CHECK_INT(sq_exec(s->db, text, &err), 0, "a run of %lld: %s", (long long)created_ms, err.text);
}

// The clock was set back between 300 and 150: filters of time are exact before and after that.
static void test_time(void)
{
    struct err err = {0};
    char there[64];
    dir_make(there);
    struct store *s = store_open(there, &err);
    put_at(s, 100);
    put_at(s, 200);
    put_at(s, 200);
    put_at(s, 300);
    for (int turn = 0; turn < 2; turn++) {
        CHECK(ask(s, "SELECT value FROM counter WHERE name = 'clock_steps'") == turn, "steps");
        CHECK(listed(s, 200, 0) == 3 && listed(s, 201, 0) == 1 && listed(s, 301, 0) == 0, "since");
        CHECK(listed(s, 0, 200) == 1 + turn && listed(s, 0, 201) == 3 + turn &&
                  listed(s, 0, 100) == 0,
              "until");
        CHECK(listed(s, 150, 300) == 2 + turn && listed(s, 1, 999) == 4 + turn, "between");
        if (!turn)
            put_at(s, 150);
    }
    store_close(s);
    dir_remove(there);
}

static void check_pragma(struct store *s, const char *name, int64_t want)
{
    struct err err;
    char text[64];
    int64_t got = -1;
    snprintf(text, sizeof text, "PRAGMA %s", name);
    CHECK(sq_number(s->db, text, &got, &err) == 0 && got == want, "%s is %lld", name,
          (long long)want);
}

static void test_settings(struct store *s)
{
    struct err err;
    check_pragma(s, "application_id", 0x6e756d61);
    check_pragma(s, "user_version", 12);
    check_pragma(s, "page_size", 8192);
    check_pragma(s, "auto_vacuum", 2);
    check_pragma(s, "synchronous", 2);
    check_pragma(s, "foreign_keys", 1);
    check_pragma(s, "trusted_schema", 0);
    check_pragma(s, "mmap_size", 0);
    CHECK(store_writable(s, &err), "writable");
    int64_t found = 0;
    CHECK(sq_number(s->db, "SELECT count(*) FROM pragma_table_info('cell')", &found, &err) == 0 &&
              found == CELL_FIELDS + 5,
          "a cell has a column for each field, its run, matrix, row, column and distribution");
}

static void test_lock(void)
{
    struct err err;
    char pid[32];
    snprintf(pid, sizeof pid, "process %d", (int)getpid());
    CHECK(!store_open(dir, &err) && err.code == ERR_CONFLICT, "a second daemon is refused");
    CHECK(strstr(err.text, pid), "by name: %s", err.text);
}

static void test_full(struct store *s)
{
    struct err err = {0};
    struct spec spec;
    int64_t id, pages = 0;
    bool again;
    char text[64];
    sq_number(s->db, "PRAGMA page_count", &pages, &err);
    snprintf(text, sizeof text, "PRAGMA max_page_count=%lld", (long long)pages);
    sq_exec(s->db, text, &err);
    make_spec(&spec, "full");
    int rc = 0;
    for (int i = 0; i < 200 && rc == 0; i++)
        rc = store_run_insert(s, &spec, "node1", NULL, &id, &again, &err);
    CHECK(rc < 0 && err.code == ERR_STORAGE, "full: %s", err.text);
    struct run r;
    CHECK_INT(store_run_get(s, id, &r, &err), 0, "reading goes on");
    run_fini(&r);
    sq_exec(s->db, "PRAGMA max_page_count=1000000", &err);
    CHECK_INT(store_run_insert(s, &spec, "node1", NULL, &id, &again, &err), 0, "and heals");
}

int main(void)
{
    struct err err = {0};
    dir_make(dir);
    struct store *s = store_open(dir, &err);
    CHECK(s, "opened: %s", err.text);
    if (!s)
        return tap_done();
    test_settings(s);
    test_insert(s);
    test_result(s);
    test_list_and_delete(s);
    test_import(s);
    test_imports_together(s);
    test_time();
    test_lock();
    test_full(s);
    store_close(s);
    s = store_open(dir, &err);
    int64_t n = 0;
    CHECK(s && store_queue_length(s, &n, &err) == 0 && n > 0, "all is there after reopening");
    store_close(s);
    store_close(NULL);
    dir_remove(dir);
    return tap_done();
}

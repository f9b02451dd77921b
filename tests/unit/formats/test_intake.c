// SPDX-License-Identifier: Apache-2.0
#include "formats/intake.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "formats/import.h"
#include "formats/log_hints.h"
#include "tests/unit/data.h"
#include "tests/unit/tap.h"

enum { NOW = 1795219200 }; // s
static const int64_t now_ms = (int64_t)NOW * 1000;

#define TABLE                                                                                      \
    "|  MPI  | CPU | MEMORY | LATENCY (ns) |\n"                                                    \
    "| Ranks | Cores | NUMA | Address | NUMA | 1MB | 1024M |\n"                                    \
    "|  000  | 1  | 0 | 0x527e70 | 0 | 11.53 | 130.76 |\n"                                         \
    "|  001  | 9  | 0 | 0x526920 | 0 | 11.43 | 156.56 |\n"

static int take(struct intake *in, const char *text, struct intake_options *o, struct err *err)
{
    struct intake_options none = {0};
    o = o ? o : &none;
    o->now_ms = now_ms;
    return intake_read(in, text, strlen(text), o, err);
}

static bool noted(const struct intake *in, const char *text)
{
    const char *conditions = in->list[0].run.conditions_json;
    return conditions && strstr(conditions, text);
}

static void test_hints(void)
{
    static const struct {
        const char *line, *node, *mode, *method;
        int64_t date_ms;
        bool several;
    } cases[] = {
        {"hostname: nid005021", "nid005021", "", "", 0, false},
        {"[Rank 0] Host = n1, CPU 3", "n1", "", "", 0, false},
        {"SLURMD_NODENAME=nid005021", "nid005021", "", "", 0, false},
        {"  Current NUMA node: 0", "", "", "", 0, false},
        {"  Number of NUMA nodes: 4", "", "", "", 0, false},
        {"ghost: x1", "", "", "", 0, false},
        {"host: a b/c", "a", "", "", 0, false},
        {"    argv[1] = --serial", "", "serial", "", 0, false},
        {"Serial (one rank at a time)", "", "serial", "", 0, false},
        {"Concurrent (all ranks at once)", "", "concurrent", "", 0, false},
        {"How much slower with company (concurrent / serial)", "", "", "", 0, false},
        {"Contention (concurrent / serial)", "", "", "", 0, false},
        {"serialized", "", "", "", 0, false},
        {"  Method: prp4-v1", "", "", "prp4-v1", 0, false},
        {"started 2026-11-21T04:05:06Z", "", "", "", 1795233906000, false},
        {"2026-11-21 04:05:06,123 run", "", "", "", 1795233906000, false},
        {"job 12026-11-21", "", "", "", 0, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct hints h = {0};
        hints_read(&h, cases[i].line);
        CHECK(strcmp(h.node, cases[i].node) == 0 && strcmp(h.mode, cases[i].mode) == 0 &&
                  strcmp(h.method, cases[i].method) == 0 && h.date_ms == cases[i].date_ms,
              "\"%s\": node \"%s\", mode \"%s\", method \"%s\", date %lld", cases[i].line, h.node,
              h.mode, h.method, (long long)h.date_ms);
    }
    struct hints h = {0};
    hints_read(&h, "host: n1");
    hints_read(&h, "host: n2");
    CHECK(h.several_nodes, "two hosts are none");
}

static void test_bare_table(void)
{
    struct intake in CLEANUP(intake_fini) = {0};
    CHECK(take(&in, TABLE, NULL, NULL) == 0 && in.n == 1 && !in.several, "a table alone");
    const struct run *r = &in.list[0].run;
    CHECK_STR(r->node, "unknown", "its node is not known");
    CHECK(r->measured_ms == now_ms && r->n_ranks == 2 && r->n_cells == 4, "date, ranks, cells");
    CHECK_STR(r->spec.size, "1M,1G", "its sizes: %s", r->spec.size);
    CHECK_STR(r->spec.cpus, "1,9", "its CPUs: %s", r->spec.cpus);
    CHECK_STR(r->method, "classic-v1", "its method: %s", r->method);
    CHECK_STR(in.keys[0], "42383ea8519057fe156de8ed3a68e988c2f92425fe190aa80fed7d19ef5e53a2",
              "the key that earlier versions gave it: %s", in.keys[0]);
    CHECK(noted(&in, "the node is not known") && noted(&in, "import_undated") &&
              noted(&in, "the page kind is not known") && noted(&in, "the mode is not known") &&
              noted(&in, "the method is not known") && noted(&in, "each cell holds one value"),
          "what was guessed is said: %s", r->conditions_json);
}

static void test_told(void)
{
    struct intake in CLEANUP(intake_fini) = {0};
    struct intake_options o = {.node = "n7",
                               .label = "March",
                               .pages = "huge",
                               .mode = "serial",
                               .method = "prp4-v1",
                               .measured_ms = 1000000};
    CHECK(take(&in, "hostname: n1\n" TABLE, &o, NULL) == 0, "everything is given");
    const struct run_document *w = &in.list[0];
    CHECK(strcmp(w->run.node, "n7") == 0 && strcmp(w->run.label, "March") == 0 &&
              w->run.measured_ms == 1000000 && w->run.spec.mode == MODE_SERIAL &&
              w->run.spec.pages == PAGES_HUGE && strcmp(w->matrices[0].name, "serial") == 0,
          "and beats what log lines say");
    CHECK_STR(w->ranks[1].pages_got, "huge", "ranks know their pages");
    CHECK(strcmp(w->run.conditions_json,
                 "[{\"kind\":\"import\",\"severity\":\"notice\",\"rank\":null,\"text\":"
                 "\"each cell holds one value, so its precision is not known\"}]") == 0,
          "nothing was guessed: %s", w->run.conditions_json);
}

static void test_log_lines(void)
{
    struct intake in CLEANUP(intake_fini) = {0};
    struct intake_options o = {0};
    CHECK(take(&in,
               "hostname: nid1\n2025-03-14 10:11:12 start\nargv[0] = ./numa_bench\n"
               "argv[1] = --serial\n" TABLE,
               &o, NULL) == 0,
          "a table with log lines");
    CHECK_STR(in.list[0].run.node, "nid1", "tells its node");
    CHECK(in.list[0].run.measured_ms == 1741947072000 && in.list[0].run.spec.mode == MODE_SERIAL,
          "its date and mode");
    CHECK(noted(&in, "no time zone") && noted(&in, "node nid1: taken from the lines"),
          "and says so");
}

static void test_file_name(void)
{
    struct intake in CLEANUP(intake_fini) = {0};
    struct intake_options o = {.file = "lumig-8ranks-serial.txt"};
    CHECK(take(&in, TABLE, &o, NULL) == 0 && in.list[0].run.spec.mode == MODE_SERIAL &&
              noted(&in, "from the file's name"),
          "a file's name may tell the mode");
    CHECK_STR(in.list[0].run.spec.note, "lumig-8ranks-serial.txt", "and is kept as the note");
}

static void test_two_modes(void)
{
    struct intake in CLEANUP(intake_fini) = {0};
    CHECK(take(&in,
               "Concurrent (all ranks at once)\n" TABLE "Serial (one rank at a time)\n" TABLE
               "| MPI | CPU | MEMORY | LATENCY RATIO |\n"
               "| Ranks | Cores | NUMA | Address | NUMA | 1MB | 1024M |\n"
               "|  000  | 1  | 0 | 0x527e70 | 0 | 1.00 | 1.00 |\n",
               NULL, NULL) == 0 &&
              in.list[0].n_matrices == 2 && in.list[0].run.spec.mode == MODE_BOTH,
          "two tables of two modes are one run; their ratio is left out");
}

static void test_long_sizes(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct intake in CLEANUP(intake_fini) = {0};
    buf_str(&text, "size (MB),0\n");
    for (int i = 0; i < 48; i++)
        buf_fmt(&text, "%dK,5\n", 1000000 + i * 1000);
    CHECK(take(&in, buf_text(&text), NULL, NULL) == 0 && in.list[0].matrices[0].col.n == 48,
          "48 odd sizes");
    CHECK_STR(in.list[0].run.spec.size, "1000000K-1047000K", "in short: %s",
              in.list[0].run.spec.size);
}

static void test_keys(void)
{
    struct intake a CLEANUP(intake_fini) = {0};
    struct intake b CLEANUP(intake_fini) = {0};
    struct intake c CLEANUP(intake_fini) = {0};
    struct intake_options named = {.file = "x.txt", .label = "again"}, other = {.node = "n2"};
    take(&a, TABLE, NULL, NULL);
    take(&b, "\xef\xbb\xbf some line\r\n" TABLE, &named, NULL);
    take(&c, TABLE, &other, NULL);
    CHECK_STR(a.keys[0], b.keys[0], "the same numbers have one key, whatever is around them");
    CHECK(strcmp(a.keys[0], c.keys[0]) != 0, "another node has another");
}

// A run as export writes it, with `run` members replaced by `with`.
static void write_export(struct buf *out, const char *node, const char *state, const char *median)
{
    struct spec spec;
    spec_init(&spec, BENCHMARK_LATENCY);
    snprintf(spec.size, sizeof spec.size, "1M");
    buf_fmt(out,
            "{\"format\":\"numaprobe-run\",\"version\":1,\"run\":{\"state\":\"%s\",\"node\":"
            "\"%s\",\"label\":null,\"method\":\"prp4-v1\",\"measured\":\"2026-11-20T10:00:00.5Z\",",
            state, node);
    struct jsonw w = jsonw_to(out);
    spec_write_json(&spec, &w, "spec");
    buf_fmt(out,
            "},\"fingerprint\":null,\"topology\":null,\"matrices\":[{\"name\":\"concurrent\","
            "\"quantity\":\"latency\",\"unit\":\"ns\",\"rows\":{\"name\":\"rank\",\"unit\":\"\","
            "\"values\":[0]},\"cols\":{\"name\":\"working_set\",\"unit\":\"bytes\",\"values\":"
            "[1048576]},\"cells\":[[{\"median\":%s}]]}],\"ranks\":[],\"log\":\"hello\"}",
            median);
}

static void test_export(void)
{
    CLEANUP_BUF struct buf one = BUF_INIT;
    struct intake in CLEANUP(intake_fini) = {0};
    write_export(&one, "n1", "succeeded", "12.5");
    CHECK(take(&in, buf_text(&one), NULL, NULL) == 0 && in.n == 1 && !in.several, "an export");
    CHECK(in.list[0].run.measured_ms == 1795168800500 && strcmp(in.list[0].log, "hello") == 0,
          "its date and log");
    CHECK(!in.list[0].run.conditions_json, "nothing is guessed of it");
}

// What an earlier version exported: other names, and sentences as conditions.
static void test_first_names(void)
{
    static char text[64 << 10];
    char path[400];
    struct intake in CLEANUP(intake_fini) = {0};
    struct err err = {0};
    data_path(path, sizeof path, "exports/first-names.json");
    CHECK(file_read_text(path, text, sizeof text) == 0, "a recorded export");
    CHECK(take(&in, text, NULL, &err) == 0 && in.n == 1, "it is taken: %s", err.text);
    if (in.n != 1)
        return;
    const struct run_document *w = &in.list[0];
    CHECK_STR(in.keys[0], "bae94882f7704a1c21ab8e728f764de753d551faff59746a52fba240cf317d14",
              "with the key that it had then: %s", in.keys[0]);
    CHECK(w->matrices[0].cells[0].v[CELL_CONVERGED] == 0, "its cells know whether they converged");
    CHECK(strlen(w->run.class_hash) == 64 && strlen(w->run.config_hash) == 64 && w->class_json,
          "its machine is known");
    CHECK(noted(&in, "\"load\",\"severity\":\"warning\",\"rank\":null,\"text\":\"load is 1.61") &&
              noted(&in, "\"forced\"") && noted(&in, "\"disturbed\"") &&
              noted(&in, "\"placement\",\"severity\":\"error\",\"rank\":1,\"text\":\"ran on") &&
              noted(&in, "\"other\""),
          "its conditions have kinds: %s", w->run.conditions_json);
}

// A value without an effect, which a new run may not have.
static void test_earlier_default(void)
{
    static char text[16 << 10];
    char path[400];
    struct intake in CLEANUP(intake_fini) = {0};
    struct err err = {0};
    data_path(path, sizeof path, "exports/threads-doubling.json");
    CHECK(file_read_text(path, text, sizeof text) == 0, "a recorded export");
    CHECK(take(&in, text, NULL, &err) == 0 && in.n == 1, "it is taken: %s", err.text);
    CHECK_STR(in.n == 1 ? in.list[0].run.spec.threads : "", "auto",
              "without the threads that had no effect");
}

static void test_lists(void)
{
    CLEANUP_BUF struct buf list = BUF_INIT, lines = BUF_INIT;
    struct intake in CLEANUP(intake_fini) = {0};
    struct intake of_lines CLEANUP(intake_fini) = {0};
    buf_str(&list, "{\"runs\":[");
    for (int i = 0; i < 3; i++) {
        buf_str(&list, i ? "," : "");
        write_export(&list, i == 1 ? "n2" : "n1", "succeeded", "12.5");
        write_export(&lines, "n1", "succeeded", "12.5");
        buf_str(&lines, "\n\n");
    }
    buf_str(&list, "]}");
    CHECK(take(&in, buf_text(&list), NULL, NULL) == 0 && in.n == 3 && in.several,
          "a list of three");
    CHECK_STR(in.list[1].run.node, "n2", "in their order");
    CHECK(take(&of_lines, buf_text(&lines), NULL, NULL) == 0 && of_lines.n == 3 && of_lines.several,
          "three lines, empty ones between them");
}

static void check_refused(const char *text, struct intake_options *o, const char *member,
                          const char *says)
{
    struct intake in CLEANUP(intake_fini) = {0};
    struct err err = {0};
    CHECK(take(&in, text, o, &err) < 0 && in.n == 0 && in.list == NULL, "refused");
    CHECK(strcmp(err.member, member) == 0 && strstr(err.text, says) != NULL, "%s: %s", err.member,
          err.text);
}

// `members` go before those of the run.
static void check_times(const char *members, const char *member, const char *says)
{
    CLEANUP_BUF struct buf text = BUF_INIT, whole = BUF_INIT;
    struct intake in CLEANUP(intake_fini) = {0};
    struct err err = {0};
    write_export(&text, "n1", "succeeded", "1");
    const char *run = strstr(buf_text(&text), "\"run\":{") + strlen("\"run\":{");
    buf_fmt(&whole, "%.*s%s,%s", (int)(run - buf_text(&text)), buf_text(&text), members, run);
    if (member)
        check_refused(buf_text(&whole), NULL, member, says);
    else
        CHECK(take(&in, buf_text(&whole), NULL, &err) == 0, "%s: %s", members, err.text);
}

static void test_times(void)
{
    check_times("\"finished\":\"2999-01-01T00:00:00Z\"", "finished", "in the future");
    check_times("\"started\":\"2999-01-01T00:00:00Z\"", "started", "in the future");
    check_times("\"created\":\"2999-01-01T00:00:00Z\"", "created", "in the future");
    check_times("\"started\":\"2026-11-20T10:00:00Z\",\"finished\":\"2026-11-18T10:00:00Z\"",
                "finished", "is before started");
    check_times("\"started\":\"2026-11-20T10:00:00Z\",\"finished\":\"2026-11-20T09:00:00Z\"", NULL,
                NULL); // the clock was set
    check_times("\"phases_ms\":{\"measure\":2592000000}", NULL, NULL);
    check_times("\"phases_ms\":{\"measure\":2592000001}", "phases_ms", "measure must be a number");
    check_times("\"phases_ms\":{\"measure\":1e300}", "phases_ms", "measure must be a number");
    check_times("\"phases_ms\":{\"measure\":-1}", "phases_ms", "measure must be a number");
    check_times("\"phases_ms\":{\"measure\":\"1\"}", "phases_ms", "measure must be a number");
    check_times("\"phases_ms\":3", "phases_ms", "must be an object");
    check_times("\"phases_ms\":{\"measure\":null}", NULL, NULL);
}

static void test_refusals(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct intake_options node = {.node = "n1"}, late = {.measured_ms = now_ms + 172800000};
    check_refused(TABLE, &late, "date", "in the future");
    check_refused(TABLE TABLE, NULL, "line 8", "of which modes");
    check_refused("| MPI | BANDWIDTH (MB/s) |\n", NULL, "line 1", "must be of LATENCY");
    check_refused("{\"matrices\":[]}", NULL, "matrices", "1 to 16");
    check_refused("{}", NULL, "matrices", "is missing");
    check_refused("{\"format\":\"x\"}", NULL, "format", "must be \"numaprobe-run\"");
    check_refused("{\"format\":\"numaprobe-run\",\"version\":2}", NULL, "version", "must be 1");
    check_refused("{\"runs\":[]}", NULL, "runs", "array of exported runs");
    check_refused("[{}]", NULL, "line 1", "is a JSON array; it must be an object");
    check_refused("\x1f\x8b\x08", NULL, "line 1", "compressed with gzip");
    check_refused("\xfd"
                  "7zXZ",
                  NULL, "line 1", "compressed with xz");
    check_refused("\xff\xfe{", NULL, "line 1", "is UTF-16: it must be UTF-8");
    check_refused("[1,0]<stdout>: host: n1\n", NULL, "line 1", "without a table");
    write_export(&text, "n1", "running", "1");
    check_refused(buf_text(&text), NULL, "state", "must be succeeded");
    buf_reset(&text);
    write_export(&text, "a b", "succeeded", "1");
    check_refused(buf_text(&text), NULL, "node", "a node name has 1 to 63");
    buf_reset(&text);
    write_export(&text, "n1", "succeeded", "0");
    check_refused(buf_text(&text), NULL, "matrices", "must be above 0");
    buf_reset(&text);
    write_export(&text, "n1", "succeeded", "null");
    check_refused(buf_text(&text), NULL, "matrices", "lacks medians");
    buf_reset(&text);
    write_export(&text, "n1", "succeeded", "1");
    check_refused(buf_text(&text), &node, "node", "contains it");
    buf_str(&text, "\n");
    write_export(&text, "n 1", "succeeded", "1");
    check_refused(buf_text(&text), NULL, "line 2", "line 2: node: a node name has 1 to 63");
}

static int take_padded(const char *before, int line_feeds, const char *after, struct err *err)
{
    struct intake in CLEANUP(intake_fini) = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    buf_str(&text, before);
    for (int i = 0; i < line_feeds; i++)
        buf_char(&text, '\n');
    buf_str(&text, after);
    *err = (struct err){0};
    return take(&in, buf_text(&text), NULL, err);
}

// Empty lines are cheap to send.
static void test_line_limit(void)
{
    CLEANUP_BUF struct buf run = BUF_INIT;
    struct err err;
    write_export(&run, "n1", "succeeded", "1");
    CHECK(take_padded("", IMPORT_LINES_MAX - 4, TABLE, &err) == 0, "a table of so many: %s",
          err.text);
    CHECK(take_padded("", IMPORT_LINES_MAX - 3, TABLE, &err) < 0 && err.code == ERR_TOO_LARGE,
          "one more: %s", err.text);
    CHECK(take_padded(buf_text(&run), IMPORT_LINES_MAX - 1, buf_text(&run), &err) == 0,
          "runs in so many: %s", err.text);
    CHECK(take_padded(buf_text(&run), IMPORT_LINES_MAX, buf_text(&run), &err) < 0 &&
              err.code == ERR_TOO_LARGE,
          "one more: %s", err.text);
}

// A run with something else in one place.
static int take_with(const char *place, const char *instead, struct err *err)
{
    struct intake in CLEANUP(intake_fini) = {0};
    CLEANUP_BUF struct buf run = BUF_INIT, all = BUF_INIT;
    write_export(&run, "n1", "succeeded", "1");
    const char *at = strstr(buf_text(&run), place);
    buf_add(&all, buf_text(&run), (size_t)(at - buf_text(&run)));
    buf_fmt(&all, "%s%s", instead, at + strlen(place));
    *err = (struct err){0};
    return take(&in, buf_text(&all), NULL, err);
}

static void add_text(struct buf *b, const char *before, int bytes, const char *after)
{
    buf_str(b, before);
    for (int i = 0; i < bytes; i++)
        buf_char(b, 'x');
    buf_str(b, after);
}

static void check_too_long(const char *place, const char *before, int bytes, const char *after,
                           const char *member)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct err err;
    add_text(&text, before, bytes, after);
    CHECK(take_with(place, buf_text(&text), &err) < 0 && strcmp(err.member, member) == 0 &&
              strstr(err.text, "takes more than"),
          "%s: %s", member, err.text);
}

// So many conditions as sentences of earlier versions; member NULL: they are taken.
static void check_conditions(int n, int bytes, const char *member)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct err err;
    buf_str(&text, "\"label\":null,\"conditions\":[");
    for (int i = 0; i < n; i++)
        add_text(&text, i ? ",\"" : "\"", bytes, "\"");
    buf_str(&text, "],");
    bool taken = take_with("\"label\":null,", buf_text(&text), &err) == 0;
    CHECK(taken ? !member : member && strcmp(err.member, member) == 0,
          "%d conditions of %d bytes: %s", n, bytes, err.text);
}

// One condition as an object, its text of so many bytes.
static void check_condition_refused(const char *severity, int bytes, const char *member)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct err err;
    buf_fmt(&text, "\"label\":null,\"conditions\":[{\"kind\":\"load\",\"severity\":\"%s\",",
            severity);
    add_text(&text, "\"rank\":null,\"text\":\"", bytes, "\"}],");
    CHECK(take_with("\"label\":null,", buf_text(&text), &err) < 0 &&
              strcmp(err.member, member) == 0 && strstr(err.text, "conditions[0]: must be"),
          "%s: %s", member, err.text);
}

static void test_text_limits(void)
{
    static const char run[] = "\"label\":null,", plan[] = "\"label\":null,\"plan\":{\"x\":\"";
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct err err;
    add_text(&text, plan, 100 << 10, "\"},");
    CHECK(take_with(run, buf_text(&text), &err) == 0, "a large plan: %s", err.text);
    check_too_long(run, plan, 128 << 10, "\"},", "plan");
    check_conditions(100, 255, NULL);
    check_conditions(256, 255, NULL);
    check_conditions(257, 1, "conditions");
    check_conditions(1, 256, "text");
    check_condition_refused("info", 256, "text");
    check_condition_refused("loud", 5, "severity");
    check_too_long("\"topology\":null", "\"topology\":{\"hash\":\"0\",\"xml\":\"", 4 << 20, "x\"}",
                   "topology");
}

static void add_matrix(struct buf *b, const char *name, int rows, int cols)
{
    buf_fmt(b,
            "{\"name\":\"%s\",\"quantity\":\"latency\",\"unit\":\"ns\",\"rows\":{\"name\":"
            "\"rank\",\"unit\":\"\",\"values\":[",
            name);
    for (int r = 0; r < rows; r++)
        buf_fmt(b, "%s%d", r ? "," : "", r);
    buf_str(b, "]},\"cols\":{\"name\":\"working_set\",\"unit\":\"bytes\",\"values\":[");
    for (int c = 0; c < cols; c++)
        buf_fmt(b, "%s%d", c ? "," : "", 4096 * (c + 1));
    buf_str(b, "]},\"cells\":[");
    for (int r = 0; r < rows; r++) {
        buf_str(b, r ? ",[" : "[");
        for (int c = 0; c < cols; c++)
            buf_str(b, c ? ",{\"median\":1}" : "{\"median\":1}");
        buf_char(b, ']');
    }
    buf_str(b, "]}");
}

static void test_cell_limit(void)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct intake in CLEANUP(intake_fini) = {0};
    struct err err = {0};
    buf_str(&text, "{\"matrices\":[");
    add_matrix(&text, "concurrent", 512, 256);
    buf_char(&text, ',');
    add_matrix(&text, "serial", 512, 257);
    buf_str(&text, "]}");
    CHECK(take(&in, buf_text(&text), NULL, &err) < 0 && err.code == ERR_TOO_LARGE &&
              strstr(err.text, "cells"),
          "%s", err.text);
}

static void test_options(void)
{
    static const struct intake_options bad[] = {
        {.mode = "both"}, {.pages = "2m"},       {.node = "a/b"},  {.node = "-\n"},
        {.label = "a\a"}, {.label = "\xff\xfe"}, {.method = "A b"}};
    static const char *const members[] = {"mode",  "pages", "node",  "node",
                                          "label", "label", "method"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct err err = {0};
        CHECK(intake_check(&bad[i], &err) < 0 && strcmp(err.member, members[i]) == 0, "%s: %s",
              err.member, err.text);
    }
}

int main(void)
{
    test_hints();
    test_bare_table();
    test_told();
    test_log_lines();
    test_file_name();
    test_two_modes();
    test_long_sizes();
    test_keys();
    test_export();
    test_first_names();
    test_earlier_default();
    test_lists();
    test_refusals();
    test_times();
    test_line_limit();
    test_text_limits();
    test_cell_limit();
    test_options();
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// What rank 0 writes is what the daemon reads; what it prints is what people know; options.
#include "bench/session/output.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "bench/session/print.h"
#include "formats/result_print.h"
#include "tests/unit/tap.h"

static const uint64_t sizes[] = {1 << 20, 1 << 30};

static struct options parsed(int argc, char **argv)
{
    struct options o;
    struct err err = {0};
    CHECK(options_parse(&o, argc, argv, &err) == 0, "options are understood %s", err.text);
    return o;
}

static struct cell cell_of(double median)
{
    struct cell c;
    cell_clear(&c);
    for (int f = 0; f < CELL_FIELDS; f++)
        c.v[f] = f == CELL_OVERLAP ? 0.99 : median;
    c.v[CELL_N] = 20;
    c.v[CELL_DISTURBED] = c.v[CELL_CONVERGED] = 1;
    return c;
}

static struct board *two_ranks(void)
{
    struct board *b = calloc(1, board_bytes(2));
    for (int i = 0; b && i < 2; i++) {
        struct slot *s = &b->slot[i];
        s->info = (struct rank_info){.rank = i,
                                     .cpu_wanted = i,
                                     .cpu = i,
                                     .mem_wanted = -1,
                                     .mem_share = 1,
                                     .pages_checked = 5,
                                     .pages_total = 5};
        s->phase_ms[PHASE_BUILD] = 10 + i;
        s->info.n_nodes = 1;
        s->info.nodes[0].node = i;
        s->info.nodes[0].process_kib = 1024 * (i + 1);
    }
    return b;
}

static int begin(struct emit *e, struct err *err)
{
    struct matrix m;
    struct shape list[SHAPES_MAX];
    shape_list(&e->options->spec, list);
    if (shape_make(&m, &list[0], 2, 2, err) < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        m.row.values[i] = i;
        m.col.values[i] = (int64_t)sizes[i];
    }
    return emit_begin(e, 2, "mpi", 64, err) < 0 ? -1 : emit_matrices(e, &m, 1, err);
}

static void speak(struct emit *e, const struct board *b, struct err *err)
{
    struct cell c = cell_of(98.5);
    int bad = begin(e, err);
    bad += emit_progress(e, PHASE_MEASURE, 1, 4, 700, err);
    for (int rank = 0; rank < 2; rank++)
        for (int col = 0; col < 2; col++)
            bad += emit_cell(e, "concurrent", rank, col, &c, err);
    struct err unknown = {0};
    CHECK(emit_cell(e, "serial", 0, 0, &c, &unknown) < 0,
          "no cell of a matrix that was not told of");
    struct condition doubt;
    condition_set(&doubt, CONDITION_PLACEMENT, 1, "\"quoted\"");
    bad += emit_condition(e, &doubt, err);
    bad += emit_end(e, b, err);
    CHECK(bad == 0, "everything is written %s", err->text);
}

static int read_back(const char *path, int counts[RECORD_KINDS], struct end *end)
{
    char line[RECORD_LINE_MAX];
    int bad = 0;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        struct record r = {0};
        struct err err = {0};
        if (record_parse(&r, line, strcspn(line, "\n"), &err) < 0) {
            printf("# %s: %s\n", err.text, line);
            bad++;
            continue;
        }
        counts[r.kind]++;
        if (r.kind == RECORD_END)
            *end = r.end;
        record_fini(&r);
    }
    if (f)
        fclose(f);
    return bad;
}

static void records(const struct board *b)
{
    char path[] = "/tmp/numaprobe-emit-XXXXXX", channel[64];
    int fd = mkstemp(path), counts[RECORD_KINDS] = {0};
    struct err err = {0};
    struct end end = {0};
    snprintf(channel, sizeof channel, "--channel=%s", path);
    char *argv[] = {(char[]){"numa_bench"}, (char[]){"latency"}, channel, (char[]){"--nonce=n1"}};
    struct options o = parsed(4, argv);
    struct emit e CLEANUP(emit_fini) = {.fd = -1};
    CHECK(emit_open(&e, &o, &err) == 0, "the channel opens");
    speak(&e, b, &err);
    CHECK(read_back(path, counts, &end) == 0, "every line parses");
    CHECK(counts[RECORD_HELLO] == 1 && counts[RECORD_MATRIX] == 1 && counts[RECORD_CELL] == 4 &&
              counts[RECORD_RANK] == 2 && counts[RECORD_CONDITION] == 1 && counts[RECORD_END] == 1,
          "one hello, one matrix, four cells, two ranks, a condition, an end");
    CHECK(end.ok && end.cells == 4 && end.phase_ms[PHASE_BUILD] == 11, "slowest rank's phases");
    struct err why = {.code = ERR_NO_MEMORY_NODE, .member = "size", .text = "too much"};
    emit_failure(&e, &why);
    read_back(path, counts, &end);
    CHECK(!end.ok && end.code == ERR_NO_MEMORY_NODE && strcmp(end.text, "too much") == 0,
          "a failure says what it was");
    close(fd);
    unlink(path);
}

static void gone_reader(void)
{
    int ends[2];
    struct err err = {0};
    struct options o = {0};
    struct emit e CLEANUP(emit_fini) = {.options = &o, .fd = -1};
    if (pipe(ends) < 0)
        return;
    close(ends[0]);
    e.fd = ends[1];
    CHECK(emit_progress(&e, PHASE_BUILD, 0, 1, -1, &err) < 0 && err.code == ERR_SYSTEM,
          "a reader that went away is an error: %s", err.text);
}

static void usage_table(const struct board *b)
{
    static const char want[] =
        "Per-node memory usage of the ranks (in MBs)\n"
        "                           Node 0          Node 1           Total\n"
        "                  --------------- --------------- ---------------\n"
        "Rank 000                     1.00            0.00            1.00\n"
        "Rank 001                     0.00            2.00            2.00\n"
        "----------------  --------------- --------------- ---------------\n"
        "Total                        1.00            2.00            3.00\n";
    const struct rank_info ranks[2] = {b->slot[0].info, b->slot[1].info};
    struct buf out CLEANUP_BUF = BUF_INIT;
    result_usage_write(ranks, 2, &out);
    CHECK_STR(buf_text(&out), want, "memory of the ranks by node");
}

// The table itself is formats/result_table.c's; here: that it, and what belongs around it, comes
// out.
static void printed(const struct board *b, const char *format, const char *wanted)
{
    char option[24], *text = NULL;
    size_t room = 0;
    struct err err = {0};
    snprintf(option, sizeof option, "%s", format);
    char *argv[] = {(char[]){"numa_bench"}, option};
    struct options o = parsed(2, argv);
    struct emit e CLEANUP(emit_fini) = {.options = &o, .fd = -1};
    struct cell c = cell_of(98.5);
    FILE *out = open_memstream(&text, &room);
    o.format = o.format == FORMAT_TABLE ? FORMAT_JSON : o.format; // no diagnostics on stdout here
    int bad = begin(&e, &err);
    for (int i = 0; i < 4; i++)
        bad += emit_cell(&e, "concurrent", i / 2, i % 2, &c, &err);
    for (int i = 0; i < 2; i++)
        e.rank[i] = b->slot[i].info;
    conditions_add(&e.conditions, CONDITION_PLACEMENT, 1, "is elsewhere");
    o.format = o.csv ? FORMAT_CSV : o.json ? FORMAT_JSON : FORMAT_TABLE;
    bad += print_results(&e, out, &err);
    fclose(out);
    CHECK(bad == 0 && strstr(text, wanted), "%s has: %s", format, wanted);
    free(text);
}

static void bad_options(void)
{
    static const char *const bad[] = {
        "--sizes=1",
        "--size=",
        "--size=4-1",
        "--size=1K:2",
        "--stride=12",
        "--mode=quickly",
        "--precision=0",
        "--min-samples=1",
        "extra",
        "--channel",
        "--pages=3M",
        "--deadline=-1",
        "--size=64 --stride=1T",
        "--targets=0",
        "--method=classical",
        "--load-rate=5",
        "--bind=0:0",
        "--np=-1",
        "--np=2000",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char word[40];
        struct options o;
        struct err err = {0};
        snprintf(word, sizeof word, "%s", bad[i]);
        char *argv[] = {(char[]){"numa_bench"}, (char[]){"latency"}, word};
        CHECK(options_parse(&o, 3, argv, &err) < 0 && err.code == ERR_USAGE && *err.text,
              "%s is refused: %s", bad[i], err.text);
    }
    char *other[] = {(char[]){"numa_bench"}, (char[]){"bandwith"}};
    struct options o;
    struct err err = {0};
    CHECK(options_parse(&o, 2, other, &err) < 0, "an unknown benchmark is refused: %s", err.text);
    char *serial[] = {(char[]){"numa_bench"}, (char[]){"--serial"}};
    o = parsed(2, serial);
    CHECK(o.spec.mode == MODE_SERIAL, "--serial is --mode=serial");
    char *both[] = {(char[]){"numa_bench"}, (char[]){"--csv"}, (char[]){"--json"}};
    CHECK(options_parse(&o, 3, both, &err) < 0, "--csv with --json is refused");
    char *modes[] = {(char[]){"numa_bench"}, (char[]){"--mode=both"}, (char[]){"--serial"}};
    CHECK(options_parse(&o, 3, modes, &err) < 0 && strstr(err.text, "--serial contradicts"),
          "--serial with --mode=both is refused: %s", err.text);
    char *plain[] = {(char[]){"numa_bench"}, (char[]){"--mode=concurrent"}, (char[]){"--serial"}};
    CHECK(options_parse(&o, 3, plain, &err) < 0, "and with --mode=concurrent");
    char *rate[] = {(char[]){"numa_bench"}, (char[]){"--load-rate=5"}};
    CHECK(options_parse(&o, 2, rate, &err) < 0 && str_starts(err.text, "--load-rate: "),
          "an option is named as it is typed: %s", err.text);
    char *foreign[] = {(char[]){"numa_bench"}, (char[]){"c2c"}, (char[]){"--serial"}};
    CHECK(options_parse(&o, 3, foreign, &err) < 0, "--serial of c2c is refused");
    char *quick[] = {(char[]){"numa_bench"}, (char[]){"--cell-ms=77"}, (char[]){"--quick"}};
    o = parsed(3, quick);
    CHECK(o.spec.precision == 5 && o.spec.visits == 6 && o.spec.cell_ms == 77,
          "--quick sets defaults; what is given holds, whatever the order");
    char *word[] = {(char[]){"numa_bench"}, (char[]){"--quick=true"}};
    o = parsed(2, word);
    CHECK(o.spec.visits == 6 && o.spec.quick, "--quick=true is --quick");
    char *no[] = {(char[]){"numa_bench"}, (char[]){"--quick"}, (char[]){"--no-quick"}};
    o = parsed(3, no);
    CHECK(o.spec.visits == 8 && !o.spec.quick, "--no-quick takes it back");
}

int main(void)
{
    struct board *b = two_ranks();
    if (!b)
        return 1;
    signal(SIGPIPE, SIG_IGN);
    records(b);
    gone_reader();
    usage_table(b);
    printed(b, "--mode=concurrent",
            "| Ranks | Cores   | NUMA |     Address    | NUMA  | 1MB    | 1024M  |");
    printed(b, "--mode=concurrent", "|  001  | 1       |");
    printed(b, "--csv", "matrix,rank,working_set_bytes");
    printed(b, "--json", "\"method\":\"prp4-v2\"");
    bad_options();
    free(b);
    return tap_done();
}

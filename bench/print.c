// SPDX-License-Identifier: Apache-2.0
#include "bench/print.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bench/place.h"
#include "model/result_table.h"

void print_diagnostics(const struct emit *e, FILE *out)
{
    int cpu = sched_getcpu();
    fprintf(out, "\n=== Debug Information ===\nMPI Configuration:\n  Number of ranks: %d\n",
            e->ranks);
    fprintf(out, "  Command line arguments:\n");
    for (int i = 0; i < e->options->argc; i++)
        fprintf(out, "    argv[%d] = %s\n", i, e->options->argv[i]);
    fprintf(out, "\nSystem Information:\n  Page size: %ld bytes\n", sysconf(_SC_PAGESIZE));
    fprintf(out, "  Number of NUMA nodes: %d\n", place_node_count());
    fprintf(out, "  NUMA available: %s\n", place_node_of_cpu(cpu) >= 0 ? "Yes" : "No");
    fprintf(out, "  Number of CPUs: %ld\n", sysconf(_SC_NPROCESSORS_ONLN));
    fprintf(out, "  Current CPU: %d\n  Current NUMA node: %d\n", cpu, place_node_of_cpu(cpu));
    fprintf(out, "  Cache line: %lld bytes\n  Method: %s\n", (long long)e->hello.line_bytes,
            e->hello.method);
    fputs("\nNote: NUMA memory binding should be controlled externally using numactl "
          "--membind=<node>\n=====================\n\n\n",
          out);
    fflush(out);
}

static void usage_line(struct buf *out, const char *head, const double *mib, int nodes)
{
    double total = 0;
    buf_fmt(out, "%-17s", head);
    for (int n = 0; n < nodes; n++) {
        buf_fmt(out, " %15.2f", mib[n]);
        total += mib[n];
    }
    buf_fmt(out, " %15.2f\n", total);
}

static void usage_rule(struct buf *out, const char *head, int columns)
{
    buf_fmt(out, "%-17s", head);
    for (int n = 0; n < columns; n++)
        buf_str(out, " ---------------");
    buf_char(out, '\n');
}

void print_usage(const struct usage *usage, int ranks, int highest_node, struct buf *out)
{
    double sum[RANK_NODES_MAX] = {0};
    char text[32];
    int nodes = highest_node + 1 < RANK_NODES_MAX ? highest_node + 1 : RANK_NODES_MAX;
    buf_str(out, "Per-node memory usage of the ranks (in MBs)\n");
    buf_fmt(out, "%-17s", "");
    for (int n = 0; n < nodes; n++) {
        snprintf(text, sizeof text, "Node %d", n);
        buf_fmt(out, " %15s", text);
    }
    buf_fmt(out, " %15s\n", "Total");
    usage_rule(out, "", nodes + 1);
    for (int r = 0; r < ranks; r++) {
        double mib[RANK_NODES_MAX];
        for (int n = 0; n < nodes; n++)
            sum[n] += mib[n] = (double)usage[r].kib[n] / 1024;
        snprintf(text, sizeof text, "Rank %03d", r);
        usage_line(out, text, mib, nodes);
    }
    usage_rule(out, "----------------", nodes + 1);
    usage_line(out, "Total", sum, nodes);
}

static const char *title_of(const struct matrix *m)
{
    return strcmp(m->name, "serial") == 0 ? "Serial (one rank at a time)"
                                          : "Concurrent (all ranks at once)";
}

static int tables(const struct emit *e, struct buf *out, struct err *err)
{
    for (int i = 0; i < e->n_matrices; i++) {
        if (e->n_matrices > 1)
            buf_fmt(out, "%s\n", title_of(&e->matrix[i]));
        result_table_write(&e->matrix[i], e->rank, e->ranks, out);
        buf_char(out, '\n');
    }
    if (e->n_matrices > 1) {
        struct matrix ratio CLEANUP(matrix_fini) = {0};
        if (result_ratio(&ratio, &e->matrix[0], &e->matrix[1], err) < 0)
            return -1;
        buf_str(out, "How much slower with company (concurrent / serial)\n");
        result_table_write(&ratio, e->rank, e->ranks, out);
        buf_char(out, '\n');
    }
    return 0;
}

static void write_phases(const struct emit *e, struct buf *out)
{
    buf_str(out, "Time (ms, slowest rank):");
    for (int p = 0; p < PHASES; p++)
        buf_fmt(out, "%s %s %.0f", p ? "," : "", phase_names[p], e->end.phase_ms[p]);
    buf_str(out, "\n");
}

static int as_table(const struct emit *e, struct buf *out, struct err *err)
{
    if (tables(e, out, err) < 0)
        return -1;
    size_t before = out->len;
    for (int i = 0; i < e->n_matrices; i++)
        result_notes_matrix(&e->matrix[i], out);
    result_notes_ranks(e->rank, e->ranks, out);
    buf_str(out, buf_text(&e->notes));
    if (out->len > before)
        buf_char(out, '\n');
    print_usage(e->usage, e->ranks, place_node_max(), out);
    buf_char(out, '\n');
    write_phases(e, out);
    return 0;
}

static int as_csv(const struct emit *e, struct buf *out, struct err *err)
{
    (void)err;
    matrix_write_csv_head(&e->matrix[0], out);
    for (int i = 0; i < e->n_matrices; i++)
        matrix_write_csv(&e->matrix[i], out);
    return 0;
}

static void write_notes(const struct emit *e, struct jsonw *w)
{
    char line[sizeof((struct record *)NULL)->note];
    jsonw_array(w, "notes");
    for (const char *at = buf_text(&e->notes); *at;) {
        size_t n = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, at);
        jsonw_text(w, NULL, line);
        at += n + 1;
    }
    jsonw_end(w);
}

// Without placement, which is the launcher's here.
static void write_parameters(const struct spec *s, struct jsonw *w)
{
    const struct benchmark *b = &benchmarks[s->benchmark];
    jsonw_object(w, "spec");
    jsonw_text(w, "benchmark", b->name);
    for (int i = 0; i < b->params.n; i++)
        param_write_value(&b->params.params[i], s, w);
    jsonw_end(w);
}

static int as_json(const struct emit *e, struct buf *out, struct err *err)
{
    (void)err;
    struct jsonw w = jsonw_to(out);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "version", NUMAPROBE_VERSION);
    jsonw_text(&w, "method", e->hello.method);
    jsonw_text(&w, "launcher", e->hello.launcher);
    jsonw_i64(&w, "line_bytes", e->hello.line_bytes);
    write_parameters(&e->options->spec, &w);
    jsonw_array(&w, "ranks");
    for (int i = 0; i < e->ranks; i++)
        rank_write_json(&e->rank[i], &w, NULL);
    jsonw_end(&w);
    jsonw_array(&w, "matrices");
    for (int i = 0; i < e->n_matrices; i++)
        matrix_write_json(&e->matrix[i], &w, NULL);
    jsonw_end(&w);
    phases_write_json(e->end.phase_ms, &w, "phases_ms");
    write_notes(e, &w);
    jsonw_end(&w);
    buf_char(out, '\n');
    return 0;
}

int print_results(const struct emit *e, FILE *out, struct err *err)
{
    static int (*const formats[])(const struct emit *e, struct buf *out, struct err *err) = {
        [FORMAT_TABLE] = as_table, [FORMAT_CSV] = as_csv, [FORMAT_JSON] = as_json};
    struct buf text CLEANUP_BUF = BUF_INIT;
    if (formats[e->options->format](e, &text, err) < 0)
        return -1;
    if (!buf_ok(&text))
        return err_set(err, ERR_NO_MEMORY, "", "no memory to print the results");
    if (fwrite(text.data, 1, text.len, out) != text.len || fflush(out) != 0)
        return err_sys(err, "cannot print the results");
    return 0;
}

void print_failure(const struct err *why, FILE *out)
{
    bool named = *why->member && why->code != ERR_USAGE;
    fprintf(out, "numa_bench: %s%s%s\n", named ? why->member : "", named ? ": " : "", why->text);
}

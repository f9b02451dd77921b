// SPDX-License-Identifier: Apache-2.0
// The end of a run that was started by hand. The forms are those of formats/, so that a table
// of numa_bench and one of numaprobe are the same text.
#include "bench/session/print.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "analysis/report/hierarchy.h"
#include "base/cleanup.h"
#include "base/memory.h"
#include "base/param.h"
#include "bench/memory/placement.h"
#include "formats/result_print.h"

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

static void write_phases(const struct emit *e, struct buf *out)
{
    buf_str(out, "Time (ms, slowest rank):");
    for (int p = 0; p < PHASES; p++)
        buf_fmt(out, "%s %s %.0f", p ? "," : "", phase_names[p], e->end.phase_ms[p]);
    buf_str(out, "\n");
}

static int as_table(const struct emit *e, struct buf *out, struct err *err)
{
    const struct report_source source = {.benchmark = (enum benchmark_id)e->options->spec.benchmark,
                                         .matrices = e->matrix,
                                         .n = e->n_matrices,
                                         .ranks = e->rank,
                                         .n_ranks = e->ranks,
                                         .base_page = memory_page_sizes("").base};
    if (hierarchy_write_lines(&source, out, err) < 0)
        return -1;
    buf_str(out, out->len ? "\n" : "");
    result_tables_write(e->matrix, e->n_matrices, e->rank, e->ranks, 0, out);
    buf_char(out, '\n');
    size_t before = out->len;
    result_notes_write(e->matrix, e->n_matrices, e->rank, e->ranks, out);
    conditions_lines(&e->conditions, out);
    if (out->len > before)
        buf_char(out, '\n');
    result_usage_write(e->rank, e->ranks, out);
    buf_char(out, '\n');
    write_phases(e, out);
    return 0;
}

static int as_csv(const struct emit *e, struct buf *out, struct err *err)
{
    (void)err;
    matrices_write_csv(e->matrix, e->n_matrices, out);
    return 0;
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
        matrix_write_json(&e->matrix[i], &w, NULL, true);
    jsonw_end(&w);
    phases_write_json(e->end.phase_ms, &w, "phases_ms");
    conditions_write_json(&e->conditions, &w, "conditions");
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

// The member at fault as it is typed, with the value that it was given.
static void print_option(const struct options *o, const char *member, FILE *out)
{
    char value[60], option[PARAM_OPTION_ROOM];
    const struct param *own = param_find(&options_own, member),
                       *p = own ? own : param_find(&benchmarks[o->spec.benchmark].params, member);
    if (!p) {
        fprintf(out, "%s: ", member);
        return;
    }
    param_get_text(p, own ? (const void *)o : &o->spec, value, sizeof value);
    bool given = strcmp(value, p->def) != 0;
    fprintf(out, "--%s%s%s: ", param_option(p, option), given ? "=" : "", given ? value : "");
}

void print_failure(const struct options *o, const struct err *why, FILE *out)
{
    fputs("numa_bench: ", out);
    if (*why->member && why->code != ERR_USAGE)
        print_option(o, why->member, out);
    fprintf(out, "%s\n", why->text);
}

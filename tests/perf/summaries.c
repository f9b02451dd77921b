// SPDX-License-Identifier: Apache-2.0
// Figures, not assertions: bytes of a run in a page of summaries (goal 1,000), and what a page of
// 100 runs costs to write and to read (goal 50,000 runs/s). usage: summaries [METRICS]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "model/fingerprint.h"
#include "model/summary.h"

enum { TURNS = 101, RUNS = 100 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void write_page(const struct summary *run, struct metric *list, int n, struct buf *out)
{
    static struct summary_writer w;
    struct summary_page head = {.node = "n1", .version = "1", .next = RUNS, .last = RUNS};
    summary_writer_init(&w);
    for (int r = 0; r < RUNS; r++) {
        struct summary s = *run;
        s.seq = s.id = r + 1;
        for (int i = 0; i < n; i++) {
            list[i].value = 80 + 9 * i + rand() % 2000 / 1000.0;
            list[i].lo = list[i].value * (1 - (50 + rand() % 30) * 1e-4);
            list[i].hi = list[i].value * (1 + (50 + rand() % 30) * 1e-4);
        }
        summary_writer_add(&w, &s, list, n);
    }
    summary_writer_end(&w, &head, out);
    summary_writer_fini(&w);
}

static double read_page(const struct buf *text)
{
    struct err err = {0};
    struct summary_page p CLEANUP(summary_page_fini) = {0};
    double start = now_us();
    CLEANUP_JSON struct json *j = json_parse(buf_text(text), text->len, &err);
    if (!j || summary_page_read(j, &p, &err) < 0 || p.n_runs != RUNS) {
        fprintf(stderr, "%s: %s\n", err.member, err.text);
        exit(1);
    }
    return now_us() - start;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 30;
    struct metric *list = calloc(METRICS_MAX, sizeof *list);
    struct summary run = {.node = "n0001",
                          .benchmark = "latency",
                          .variant = "size=1-1024 n_ranks=64",
                          .method = "prp4-v1",
                          .metrics_version = 4,
                          .state = RUN_SUCCEEDED,
                          .measured_ms = 1795219200123,
                          .finished_ms = 1795219231613,
                          .duration_s = 31.49,
                          .n_ranks = 64,
                          .disturbed = 0.01};
    double writing[TURNS], reading[TURNS];
    size_t bytes = 0;
    if (!list || n < 1 || n > METRICS_MAX)
        return 2;
    text_hash("class", run.class_hash);
    text_hash("config", run.config_hash);
    text_hash("topology", run.topology_hash);
    for (int i = 0; i < n; i++) {
        snprintf(list[i].name, sizeof list[i].name, "latency.n%d.n%d.median_ns", i / 8, i % 8);
        snprintf(list[i].unit, sizeof list[i].unit, "ns");
    }
    for (int t = 0; t < TURNS; t++) {
        CLEANUP_BUF struct buf text = BUF_INIT;
        double start = now_us();
        write_page(&run, list, n, &text);
        writing[t] = now_us() - start;
        reading[t] = read_page(&text);
        bytes = text.len;
    }
    double w = middle_of(writing, TURNS) / RUNS, r = middle_of(reading, TURNS) / RUNS;
    printf("%d metrics: %zu bytes a run in a page of %d; written in %.1f us, read in %.1f us a run "
           "= %.0f runs/s a core\n",
           n, bytes / RUNS, RUNS, w, r, 1e6 / r);
    free(list);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// One sweep over virtual nodes with fetch/, as a line of JSON: time of the first response, of the
// last one of a node that is well, and of all, CPU time and memory of this process, and latencies
// of the nodes that responded.
// usage: fan NODES PORT PATH IN_FLIGHT LIMIT_MS [CA_FILE]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fetch/fetch.h"
#include "virtual/serve.h"

struct sweep {
    uint64_t begin_ns, first_ns, good_ns; // good_ns: the last one that is well
    int ok, bad, errors[FETCH_ERRORS];
    size_t bytes;
    int64_t *us; // of those that responded
};

static void done(void *ctx, struct fetch_response *r)
{
    struct sweep *s = ctx;
    s->errors[r->error]++;
    if (r->error || r->status != 200) {
        s->bad++;
        return;
    }
    if (!s->ok)
        s->first_ns = clock_mono_ns();
    s->good_ns = clock_mono_ns();
    s->us[s->ok++] = r->total_us;
    s->bytes += r->body.len;
}

static int order(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void print_sweep(const struct sweep *s, uint64_t cpu_ns)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    qsort(s->us, (size_t)s->ok, sizeof *s->us, order);
    printf(
        "{\"ok\":%d,\"bad\":%d,\"first_ms\":%.1f,\"good_ms\":%.1f,\"all_ms\":%.1f,\"cpu_ms\":%.1f,"
        "\"p50_ms\":%.2f,"
        "\"p99_ms\":%.2f,\"bytes\":%zu,\"peak_rss_kib\":%ld,\"errors\":{",
        s->ok, s->bad, (double)(s->first_ns - s->begin_ns) / 1e6,
        (double)(s->good_ns - s->begin_ns) / 1e6, (double)(clock_mono_ns() - s->begin_ns) / 1e6,
        (double)cpu_ns / 1e6, s->ok ? (double)s->us[s->ok / 2] / 1e3 : 0,
        s->ok ? (double)s->us[s->ok * 99 / 100] / 1e3 : 0, s->bytes, use.ru_maxrss);
    const char *comma = "";
    for (int e = 1; e < FETCH_ERRORS; e++)
        if (s->errors[e]) {
            printf("%s\"%s\":%d", comma, fetch_error_info((enum fetch_error)e)->slug, s->errors[e]);
            comma = ",";
        }
    puts("}}");
}

int main(int argc, char **argv)
{
    struct err err = {0};
    if (argc < 6 || argc > 7) {
        fputs("usage: fan NODES PORT PATH IN_FLIGHT LIMIT_MS [CA_FILE]\n", stderr);
        return 2;
    }
    const char *ca = argc == 7 ? argv[6] : NULL;
    const struct fetch_tls tls = {.cacert = ca};
    int nodes = atoi(argv[1]), port = atoi(argv[2]);
    struct fetch_limits limits = fetch_defaults;
    limits.total_ms = limits.connect_ms = atoi(argv[5]);
    struct sweep s = {.us = calloc((size_t)nodes, sizeof *s.us), .begin_ns = clock_mono_ns()};
    uint64_t cpu_ns = clock_cpu_ns();
    struct fetch *f = fetch_new(atoi(argv[4]), &limits, &err);
    if (!f || !s.us)
        return 1;
    for (int i = 0; i < nodes; i++) {
        char base[VIRTUAL_URL_ROOM], url[300];
        virtual_url(i, port, base);
        snprintf(url, sizeof url, "%s%s%s", ca ? "https" : "http", base + strlen("http"), argv[3]);
        if (fetch_start(f, &(struct fetch_request){.url = url, .tls = &tls}, done, &s, &err) < 0)
            return 1;
    }
    fetch_run(f, NULL);
    print_sweep(&s, clock_cpu_ns() - cpu_ns);
    fetch_free(f);
    free(s.us);
    return 0;
}

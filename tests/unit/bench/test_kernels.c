// SPDX-License-Identifier: Apache-2.0
// The kernels of bandwidth and of core-to-core handover, on a team of pinned threads.
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/kernels/line_transfer.h"
#include "bench/kernels/stream.h"
#include "bench/ranks/thread_team.h"
#include "tests/unit/tap.h"

// The first two CPUs that we may use, or the same one twice.
static void two_cpus(int cpus[2])
{
    cpu_set_t set;
    int n = 0;
    sched_getaffinity(0, sizeof set, &set);
    for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET(i, &set))
            cpus[n++] = i;
    if (n < 2)
        cpus[1] = cpus[0];
}

struct visit {
    struct team *team;
    int cpu[2], calls[2];
};

static void visit(void *ctx, int index)
{
    struct visit *v = ctx;
    v->cpu[index] = sched_getcpu();
    v->calls[index]++;
}

static void teams(void)
{
    struct visit v = {0};
    struct err err = {0};
    int cpus[2];
    two_cpus(cpus);
    v.team = team_new(cpus, 2, &err);
    CHECK(v.team, "a team of two: %s", err.text);
    team_run(v.team, visit, &v);
    team_run(v.team, visit, &v);
    CHECK(v.calls[0] == 2 && v.calls[1] == 2, "every member runs each call once");
    CHECK(v.cpu[0] == cpus[0] && v.cpu[1] == cpus[1] && !team_strayed(v.team),
          "members are where they were pinned");
    team_free(v.team);
    CHECK(!team_new((int[]){60000}, 1, &err) && strstr(err.text, "60000") &&
              strstr(err.text, "CPUs are "),
          "a CPU that is not there is named, and those that are: %s", err.text);
    team_free(NULL);
}

// The parts begin and end beside whole vectors.
static void kernels_of(const struct stream_code *code, const char *stores)
{
    enum { N = 10007, TIMES = 10 };
    CLEANUP_MEM double *memory = NULL;
    if (posix_memalign((void **)&memory, 64, 3 * (N + 1) * sizeof *memory) != 0)
        return;
    struct stream_arrays s = {memory, memory + N + 1, memory + 2 * (N + 1), N};
    stream_fill(&s, 0, N);
    CHECK(stream_pass_in(code, STREAM_READ, &s, 3, N - 4) == N - 7,
          "%s %s: the read kernel sees every element once", code->name, stores);
    double want[3];
    stream_begin(want);
    for (int t = 0; t < TIMES; t++)
        for (int k = STREAM_COPY; k <= STREAM_TRIAD;
             k++, stream_expect(want, (enum stream_kernel)(k - 1)))
            for (int part = 0; part < 3; part++) {
                size_t third = N / 3, first = third * (size_t)part;
                stream_pass_in(code, (enum stream_kernel)k, &s, first,
                               part == 2 ? N : first + third);
            }
    struct stream_check check = stream_verify(&s, want);
    CHECK(check.wrong == 0 && check.worst <= 1e-13,
          "%s %s: arrays are as arithmetic says after %d rounds", code->name, stores, TIMES);
    s.b[N - 1] *= 1 + 1e-9;
    CHECK(stream_verify(&s, want).wrong == 1, "one wrong element in ten thousand is found");
    const double outside = s.c[0];
    stream_pass_in(code, STREAM_WRITE, &s, 1, N);
    bool written = s.c[0] == outside;
    for (size_t i = 1; i < N; i++)
        written &= s.c[i] == STREAM_SCALAR;
    CHECK(written, "the non-temporal write writes its part, and no other");
}

static void kernels(void)
{
    static const char *const stores[STORES] = {"cached", "streaming"};
    char list[80];
    for (int k = INSTRUCTIONS_AUTO; k < INSTRUCTIONS; k++)
        for (int st = 0; st < STORES; st++) {
            const struct stream_code *code = stream_code((enum instructions)k, (enum stores)st);
            if (code)
                kernels_of(code, stores[st]);
        }
    stream_code_list(STORES_CACHED, list, sizeof list);
    CHECK(strncmp(list, "scalar", 6) == 0, "every CPU has scalar instructions: %s", list);
#if defined(__x86_64__)
    CHECK(stream_code(INSTRUCTIONS_SSE2, STORES_STREAMING) &&
              !stream_code(INSTRUCTIONS_NEON, STORES_CACHED) && strstr(list, "scalar, sse2"),
          "x86 has SSE2 and streaming stores, and not NEON");
#elif defined(__aarch64__)
    CHECK(stream_code(INSTRUCTIONS_NEON, STORES_STREAMING) &&
              !stream_code(INSTRUCTIONS_SCALAR, STORES_STREAMING) &&
              !stream_code(INSTRUCTIONS_AVX2, STORES_CACHED),
          "arm64 has NEON and its streaming stores, and not AVX2");
#endif
}

// As stream.c of McCalpin counts: 2, 2, 3, 3 words an element; a read and a write have one.
static void rates(void)
{
    static const double words[STREAM_KERNELS] = {2, 2, 3, 3, 1, 1};
    for (int k = 0; k < STREAM_KERNELS; k++)
        CHECK(stream_mb_per_s((enum stream_kernel)k, 1e6, 1e6) == words[k] * 8000,
              "%s of a million elements in a millisecond: %.0f MB/s", stream_kernels[k].name,
              stream_mb_per_s((enum stream_kernel)k, 1e6, 1e6));
}

struct handover {
    struct team *team;
    pthread_barrier_t begin;
    struct c2c_pair pair;
    uint64_t answers, ends; // when the pong side comes, when the ping side is through
    double trip_ns;
};

static void hand_over(void *ctx, int index)
{
    struct handover *h = ctx;
    pthread_barrier_wait(&h->begin);
    if (!index) {
        h->trip_ns = c2c_ping(&h->pair);
        h->ends = clock_mono_ns();
        return;
    }
    uint64_t begun = clock_mono_ns();
    do
        h->answers = clock_mono_ns();
    while (h->answers - begun < 2000000);
    c2c_pong(&h->pair);
}

static void handovers(void)
{
    int cpus[2];
    struct err err = {0};
    two_cpus(cpus);
    if (cpus[0] == cpus[1]) {
        SKIP("one CPU: nothing to hand over");
        return;
    }
    struct handover h = {.team = team_new(cpus, 2, &err)};
    pthread_barrier_init(&h.begin, NULL, 2);
    for (int m = 0; h.team && m < C2C_METHODS; m++) {
        static struct c2c_line lines[2], area[C2C_AREA_LINES];
        c2c_link(area, 1);
        h.pair = (struct c2c_pair){lines, (enum c2c_method)m, 160 * C2C_AREA_LINES, area};
        team_run(h.team, hand_over, &h);
        double told = h.pair.trips * h.trip_ns;
        double both = (double)(h.ends - h.answers);
        CHECK(told > 0 && told <= both, "%s: %.0f ns of %.0f that both were there: no waiting",
              c2c_method_names[m], told, both);
        CHECK(atomic_load(&lines[0].value) == 0 && atomic_load(&lines[1].value) == 0,
              "%s: lines end as they began", c2c_method_names[m]);
    }
    team_free(h.team);
    pthread_barrier_destroy(&h.begin);
}

int main(void)
{
    teams();
    kernels();
    rates();
    handovers();
    return tap_done();
}

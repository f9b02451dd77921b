// SPDX-License-Identifier: Apache-2.0
// Atomic operations and locks with real threads and real processes: nothing is lost, and no two
// hold a lock at a time.
#include "bench/kernels/contended.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

enum { WORKERS = 3, SAMPLE_NS = 300000, ROUNDS = 2 };

struct worker {
    pthread_t thread;
    struct contended_part part;
    struct contended_done done;
    pthread_barrier_t *start;
};

static void *work(void *context)
{
    struct worker *w = context;
    pthread_barrier_wait(w->start);
    contended_run(&w->part, &w->done);
    return NULL;
}

static struct contended_done sum_of(const struct worker *w, int n)
{
    struct contended_done all = {0};
    for (int i = 0; i < n; i++) {
        all.operations += w[i].done.operations;
        all.handovers += w[i].done.handovers;
        all.balance += w[i].done.balance;
    }
    return all;
}

static void threads_at(struct contended *c, enum operation operation, enum atomic_form form, int n)
{
    struct worker w[WORKERS] = {0};
    pthread_barrier_t start;
    if (!atomic_code(form))
        return;
    for (int round = 0; round < ROUNDS; round++) {
        contended_reset(c);
        pthread_barrier_init(&start, NULL, (unsigned)n);
        for (int i = 0; i < n; i++) {
            w[i].start = &start;
            w[i].part.shared = c;
            w[i].part.operation = operation;
            w[i].part.code = atomic_code(form);
            w[i].part.number = (uint32_t)i;
            w[i].part.least_ns = SAMPLE_NS;
            if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0)
                abort();
        }
        for (int i = 0; i < n; i++)
            pthread_join(w[i].thread, NULL);
        pthread_barrier_destroy(&start);
        struct contended_done all = sum_of(w, n);
        CHECK(all.operations > 0 && contended_is_right(c, operation, &all),
              "%s by %d threads: %llu operations, none is lost", operation_names[operation], n,
              (unsigned long long)all.operations);
        CHECK(all.handovers <= all.operations &&
                  (operation_is_lock(operation) ? all.handovers >= 1 : !all.handovers) &&
                  (n > 1 || all.handovers <= 1),
              "handed over %llu times", (unsigned long long)all.handovers);
        all.operations++, all.balance++;
        CHECK(!contended_is_right(c, operation, &all), "one that is missing is noticed");
    }
}

// As the ranks are: processes that share the line at different addresses.
static void processes(enum operation operation)
{
    size_t bytes = sizeof(struct contended) + 2 * sizeof(struct contended_done);
    struct contended *c =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED)
        abort();
    struct contended_done *done = (struct contended_done *)(void *)(c + 1);
    fflush(stdout); // or the children would say it again
    for (uint32_t i = 0; i < 2; i++)
        if (fork() == 0) {
            struct contended_part part = {
                .shared = c,
                .operation = operation,
                .code = atomic_code(FORM_AUTO),
                .number = i,
                .least_ns = SAMPLE_NS,
            };
            contended_run(&part, &done[i]);
            _exit(0);
        }
    int status, well = 0;
    while (wait(&status) > 0)
        well += status == 0;
    struct contended_done all = {.operations = done[0].operations + done[1].operations,
                                 .balance = done[0].balance + done[1].balance};
    CHECK(well == 2 && all.operations > 0 && contended_is_right(c, operation, &all),
          "%s by two processes: %llu operations", operation_names[operation],
          (unsigned long long)all.operations);
    munmap(c, bytes);
}

int main(void)
{
    struct contended *c = NULL;
    if (posix_memalign((void **)&c, CONTENDED_LINE, sizeof *c) != 0)
        abort();
    for (int k = 0; k < AXIS_OPERATIONS; k++) {
        for (int form = FORM_AUTO; form <= FORM_LLSC; form++)
            for (int n = 1; n <= WORKERS; n++)
                threads_at(c, (enum operation)k, (enum atomic_form)form, n);
        processes((enum operation)k);
    }
#if !defined __aarch64__
    CHECK(!atomic_code(FORM_LSE) && !atomic_code(FORM_LLSC), "forms of arm64 alone");
#endif
    CHECK(*atomic_code_name(atomic_code(FORM_AUTO)), "every machine has a form");
    free(c);
    return tap_done();
}

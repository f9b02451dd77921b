// SPDX-License-Identifier: Apache-2.0
// Work is handed over by a generation counter under a mutex: members sleep on a condition between
// calls, so an idle team costs nothing. team_meet is a sense-reversing barrier that spins, because
// the start of a measurement must not depend on how fast the kernel wakes a rank.
#include "bench/ranks/thread_team.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench/memory/affinity.h"

struct member {
    struct team *team;
    pthread_t thread;
    int index, cpu;
    int seen_cpu;
    bool strayed;
};

struct team {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    int n, busy;
    unsigned generation;
    bool quit;
    void (*fn)(void *ctx, int index);
    void *ctx;
    struct member members[];
};

static void *member_main(void *arg)
{
    struct member *m = arg;
    struct team *t = m->team;
    unsigned seen = 0;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->generation == seen && !t->quit)
            pthread_cond_wait(&t->work, &t->lock);
        if (t->quit)
            break;
        seen = t->generation;
        pthread_mutex_unlock(&t->lock);
        t->fn(t->ctx, m->index);
        m->seen_cpu = sched_getcpu();
        m->strayed |= m->seen_cpu != m->cpu;
        pthread_mutex_lock(&t->lock);
        if (--t->busy == 0)
            pthread_cond_signal(&t->done);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

// Starts one member with its affinity set before its first instruction.
static int member_start(struct member *m, struct err *err)
{
    cpu_set_t *set = CPU_ALLOC((size_t)m->cpu + 1);
    size_t bytes = CPU_ALLOC_SIZE((size_t)m->cpu + 1);
    pthread_attr_t attr;
    if (!set)
        return err_set(err, ERR_NO_MEMORY, "cpus", "no memory for a CPU set");
    CPU_ZERO_S(bytes, set);
    CPU_SET_S((size_t)m->cpu, bytes, set);
    pthread_attr_init(&attr);
    int rc = pthread_attr_setaffinity_np(&attr, bytes, set);
    if (rc == 0)
        rc = pthread_create(&m->thread, &attr, member_main, m);
    pthread_attr_destroy(&attr);
    CPU_FREE(set);
    if (rc == EINVAL)
        return affinity_refuse(m->cpu, "load_cpus", "", err);
    errno = rc;
    return rc ? err_sys(err, "cannot start a thread on CPU %d", m->cpu) : 0;
}

struct team *team_new(const int *cpus, int n, struct err *err)
{
    struct team *t = calloc(1, sizeof *t + (size_t)n * sizeof t->members[0]);
    if (!t) {
        err_set(err, ERR_NO_MEMORY, "cpus", "no memory for %d threads", n);
        return NULL;
    }
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->work, NULL);
    pthread_cond_init(&t->done, NULL);
    for (int i = 0; i < n; i++) {
        t->members[i] = (struct member){.team = t, .index = i, .cpu = cpus[i], .seen_cpu = -1};
        if (member_start(&t->members[i], err) < 0) {
            team_free(t);
            return NULL;
        }
        t->n++;
    }
    return t;
}

void team_free(struct team *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->quit = true;
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->n; i++)
        pthread_join(t->members[i].thread, NULL);
    pthread_cond_destroy(&t->done);
    pthread_cond_destroy(&t->work);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

void team_run(struct team *t, void (*fn)(void *ctx, int index), void *ctx)
{
    pthread_mutex_lock(&t->lock);
    t->fn = fn;
    t->ctx = ctx;
    t->busy = t->n;
    t->generation++;
    pthread_cond_broadcast(&t->work);
    while (t->busy)
        pthread_cond_wait(&t->done, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

bool team_strayed(const struct team *t)
{
    for (int i = 0; i < t->n; i++)
        if (t->members[i].strayed)
            return true;
    return false;
}

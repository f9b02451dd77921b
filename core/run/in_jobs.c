// SPDX-License-Identifier: Apache-2.0
// A list that is searched: the queue has at most 32 runs.
#include "core/run/in_jobs.h"

#include "base/cleanup.h"

void in_jobs_put(struct in_jobs *p, int64_t run_id, struct batch_place *place)
{
    if (p->n == COUNT_OF(p->list))
        return;
    p->list[p->n].run_id = run_id;
    p->list[p->n++].place = *place;
    *place = (struct batch_place){0};
}

const struct batch_place *in_jobs_find(const struct in_jobs *p, int64_t run_id)
{
    for (int i = 0; i < p->n; i++)
        if (p->list[i].run_id == run_id)
            return &p->list[i].place;
    return NULL;
}

void in_jobs_forget(struct in_jobs *p, int64_t run_id)
{
    for (int i = 0; i < p->n; i++)
        if (p->list[i].run_id == run_id) {
            batch_place_fini(&p->list[i].place);
            p->list[i] = p->list[--p->n];
            return;
        }
}

void in_jobs_fini(struct in_jobs *p)
{
    while (p->n)
        in_jobs_forget(p, p->list[0].run_id);
}

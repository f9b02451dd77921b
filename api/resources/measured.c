// SPDX-License-Identifier: Apache-2.0
// One way from the number in a path to the matrices.
#include "api/resources/measured.h"

#include "api/resources/resources.h"

void measured_fini(struct measured *m)
{
    run_fini(&m->run);
    store_matrices_free(m->list, m->n);
}

int measured_load(const struct request *q, struct measured *m, struct err *err)
{
    if (run_find(api_of(q), q->arg, &m->run, err) < 0)
        return -1;
    if (!run_state_final(m->run.state))
        return err_set(
            err, ERR_CONFLICT, "state",
            "the run is %s; its matrices are available when it has finished (?wait= of the run)",
            run_state_names[m->run.state]);
    return store_matrices_get(api_of(q)->store, q->arg, &m->list, &m->n, err);
}

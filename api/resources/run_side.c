// SPDX-License-Identifier: Apache-2.0
// Comparison and report need the same of each of their runs: the run, its matrices, its ranks,
// its facts and its topology. It is loaded here, and an error names the parameter with the
// run's number.
#include "api/resources/run_side.h"

#include <string.h>

#include "api/services/services.h"
#include "base/str.h"

void run_side_fini(struct run_side *s)
{
    stored_run_fini(&s->stored);
    machine_then_fini(&s->then);
    json_free(s->plan);
    json_free(s->conditions);
}

int run_side_load(const struct request *q, const char *member, int64_t id, struct run_side *s,
                  struct err *err)
{
    const struct run *run = &s->stored.run;
    if (stored_run_load(api_of(q)->store, id, &s->stored, err) < 0)
        return -1;
    if (run->state != RUN_SUCCEEDED)
        return err_set(err, ERR_CONFLICT, member, "run %lld is %s: it has no complete result",
                       (long long)id, run_state_names[run->state]);
    if (run->plan_json)
        s->plan = json_parse(run->plan_json, strlen(run->plan_json), NULL);
    if (run->conditions_json)
        s->conditions = json_parse(run->conditions_json, strlen(run->conditions_json), NULL);
    return machine_then_load(api_of(q)->store, run, &s->then, err);
}

int run_side_id(const struct request *q, const char *name, int64_t *id, struct err *err)
{
    const char *text = request_query(q, name);
    if (text && str_to_i64(text, id) && *id > 0)
        return 0;
    return err_set(err, ERR_INVALID, name, "must be the number of a run");
}

// SPDX-License-Identifier: Apache-2.0
// GET /readyz: what must work so that a run can be requested and stored, a check each.
#include <string.h>

#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "base/jsonw.h"

// A check may have something to say also when it is passed.
struct check_note {
    char text[200];
};

static int check_storage(const struct api_services *api, struct check_note *note, struct err *err)
{
    (void)note;
    return store_writable(api->store, err) ? 0 : -1;
}

static int check_programs(const struct api_services *api, struct check_note *note, struct err *err)
{
    return runner_ready(api->runner, note->text, sizeof note->text, err);
}

static int check_disk(const struct api_services *api, struct check_note *note, struct err *err)
{
    (void)note;
    return store_has_room(api->store, err);
}

static const struct {
    const char *name;
    int (*check)(const struct api_services *api, struct check_note *note, struct err *err);
} checks[] = {
    {"storage", check_storage},
    {"programs", check_programs},
    {"disk", check_disk},
};

// Writes the checks; returns how many failed, the last failure in err.
static int run_checks(const struct api_services *api, struct jsonw *w, struct err *err)
{
    int failed = 0;
    jsonw_array(w, "checks");
    for (unsigned i = 0; i < COUNT_OF(checks); i++) {
        struct err why = {0};
        struct check_note note = {""};
        bool ok = checks[i].check(api, &note, &why) == 0;
        jsonw_object(w, NULL);
        jsonw_text(w, "name", checks[i].name);
        jsonw_bool(w, "ok", ok);
        if (!ok || *note.text)
            jsonw_text(w, "text", ok ? note.text : why.text);
        jsonw_end(w);
        if (!ok) {
            failed++;
            err_set(err, ERR_UNAVAILABLE, checks[i].name, "%s", why.text);
        }
    }
    jsonw_end(w);
    return failed;
}

int health_ready(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    bool verbose = false;
    if (request_query_bool(q, "verbose", &verbose, err) < 0)
        return -1;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    int failed = run_checks(api_of(q), &w, err);
    storage_write_findings(api_of(q), &w);
    jsonw_bool(&w, "ready", !failed);
    jsonw_bool(&w, "busy", runner_busy(api_of(q)->runner));
    jsonw_i64(&w, "loop_wakeups", (int64_t)loop_wakeups(api_of(q)->loop));
    jsonw_end(&w);
    if (failed && !verbose)
        return -1; // as a problem that names the first thing to fix
    if (!verbose) {
        buf_reset(&body);
        buf_str(&body, "{\"ready\":true}");
    }
    r->retry_after_s = failed ? REPLY_RETRY_S : 0;
    return reply_json(r, failed ? 503 : 200, &body, err);
}

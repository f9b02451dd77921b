// SPDX-License-Identifier: Apache-2.0
// A reference of any origin, and runs that are judged by it: {"reference": …, "page": …}. What is
// taken can be written and read again, and a verdict has numbers.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/class_reference.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "model/summary.h"
#include "tests/fuzz/fuzz.h"

static void hold_again(const struct class_reference *r)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct class_reference again CLEANUP(class_reference_fini) = {0};
    struct jsonw w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    class_reference_write_json(r, &w);
    jsonw_end(&w);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&text), text.len, NULL);
    fuzz_hold(j && class_reference_read(&again, j, NULL) == 0 && again.n == r->n);
    for (int i = 0; i < r->n; i++)
        fuzz_hold(strcmp(again.list[i].name, r->list[i].name) == 0);
}

static void hold_metric(const struct class_reference_metric *m)
{
    fuzz_hold(isfinite(m->median) && m->median > 0 && m->nodes >= 0);
    fuzz_hold(isfinite(m->spread) && m->spread > 0 && isfinite(m->runs) && m->runs > 0);
    fuzz_hold(!str_control(m->name, strlen(m->name)) && !str_control(m->cpu, strlen(m->cpu)));
}

static void judge(const struct class_reference *r, const struct summary_page *p, int i)
{
    const struct summary *s = &p->runs[i];
    const struct class_reference_run run = {s, s->layout < 0 ? NULL : &p->layouts[s->layout]};
    struct class_reference_verdict v;
    fuzz_hold(class_reference_judge(&v, r, &run, 10, 20, NULL) == 0);
    fuzz_hold((v.state == REFERENCE_UNKNOWN) == (*v.why != '\0'));
    fuzz_hold(v.worse <= v.compared);
    fuzz_hold(!v.worst || (isfinite(v.slower) && !isnan(v.percent) && v.q >= 0 && v.q <= 1));
}

void fuzz_reference(const uint8_t *data, size_t size)
{
    CLEANUP_MEM char *text = fuzz_text(data, size);
    struct class_reference r CLEANUP(class_reference_fini) = {0};
    struct summary_page p CLEANUP(summary_page_fini) = {0};
    struct err err = {0};
    CLEANUP_JSON struct json *j = json_parse(text, size, &err);
    const struct json *document = j ? json_get(j, "reference") : NULL;
    fuzz_accepted = document && class_reference_read(&r, document, &err) == 0;
    fuzz_hold(fuzz_accepted || !document || (err.code != ERR_NONE && *err.text));
    if (!fuzz_accepted)
        return;
    for (int i = 0; i < r.n; i++)
        hold_metric(&r.list[i]);
    hold_again(&r);
    const struct json *page = json_get(j, "page");
    if (page && summary_page_read(page, &p, NULL) == 0)
        for (int i = 0; i < p.n_runs; i++)
            judge(&r, &p, i);
}

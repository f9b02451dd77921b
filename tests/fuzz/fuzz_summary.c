// SPDX-License-Identifier: Apache-2.0
// Any bytes as a page of summaries from a node. What is taken keeps the promises of the header,
// and can be written and read again.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/summary.h"
#include "tests/fuzz/fuzz.h"

static void hold_run(const struct summary_page *p, const struct summary *s)
{
    fuzz_hold(s->layout >= -1 && s->layout < p->n_layouts && s->seq >= 0 && s->id >= 0);
    fuzz_hold(run_node_check(s->node, NULL) == 0 && run_label_check(s->label, NULL) == 0);
    fuzz_hold(isnan(s->disturbed) || (s->disturbed >= 0 && s->disturbed <= 1));
    for (int i = 0; s->layout >= 0 && i < p->layouts[s->layout].n; i++) {
        fuzz_hold(isfinite(s->values[i]) && s->values[i] > 0);
        fuzz_hold(isnan(s->lo[i]) || (s->lo[i] >= 0 && s->lo[i] <= s->values[i]));
        fuzz_hold(isnan(s->hi[i]) || s->hi[i] >= s->values[i]);
    }
}

static void write_run(struct summary_writer *w, const struct summary_page *p,
                      const struct summary *s)
{
    int n = s->layout < 0 ? -1 : p->layouts[s->layout].n;
    struct metric *list = calloc((size_t)n + 2, sizeof *list);
    fuzz_hold(list != NULL);
    for (int i = 0; i < n; i++) {
        const struct summary_metric *m = &p->layouts[s->layout].list[i];
        list[i] = (struct metric){.value = s->values[i], .lo = s->lo[i], .hi = s->hi[i]};
        memcpy(list[i].name, m->name, sizeof list[i].name);
        memcpy(list[i].unit, m->unit, sizeof list[i].unit);
    }
    summary_writer_add(w, s, list, n);
    free(list);
}

static void hold_again(const struct summary_page *p)
{
    static struct summary_writer w;
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct summary_page q CLEANUP(summary_page_fini) = {0};
    summary_writer_init(&w);
    for (int i = 0; i < p->n_runs; i++)
        write_run(&w, p, &p->runs[i]);
    struct summary_page head = *p;
    memcpy(head.node, "n1", 3); // it may be missing, but cannot be empty
    summary_writer_end(&w, &head, &text);
    summary_writer_fini(&w);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&text), text.len, NULL);
    fuzz_hold(j && summary_page_read(j, &q, NULL) == 0 && q.n_runs == p->n_runs);
}

void fuzz_summary(const uint8_t *data, size_t size)
{
    struct summary_page p = {0};
    struct err err = {0};
    char *text = fuzz_text(data, size);
    struct json *j = json_parse(text, size, &err);
    fuzz_accepted = j && summary_page_read(j, &p, &err) == 0;
    for (int i = 0; i < p.n_runs; i++)
        hold_run(&p, &p.runs[i]);
    if (fuzz_accepted)
        hold_again(&p);
    else
        fuzz_hold(!p.memory && err.code != ERR_NONE && *err.text);
    json_free(j);
    free(text);
    summary_page_fini(&p);
}

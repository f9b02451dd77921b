// SPDX-License-Identifier: Apache-2.0
// Both ends are the same program, so structures go as they are; texts follow with their NUL.
#include "fleet/collect/judged_wire.h"

#include <stdlib.h>
#include <string.h>

struct wire_judgement {
    int64_t now_ms;
    int n_unseen, n_seen;
};

struct wire_sight {
    enum kept_what what;
    int grade;
    double percent, lo, hi;
    int64_t since_ms, proof, oldest;
    int n_runs;
    int64_t runs[NEWEST_RUNS];
};

void judged_begin(struct buf *out, int n_unseen, int n_seen, int64_t now_ms)
{
    const struct wire_judgement head = {now_ms, n_unseen, n_seen};
    buf_add(out, &head, sizeof head);
}

static void wire_add_text(struct buf *out, const char *text)
{
    buf_add(out, text, strlen(text) + 1);
}

void judged_add_unseen(struct buf *out, const struct kept_unseen *u)
{
    buf_add(out, &u->about, sizeof u->about);
    wire_add_text(out, u->name);
    wire_add_text(out, u->class ? u->class : "");
}

void judged_add_sight(struct buf *out, const struct kept_sight *s)
{
    struct wire_sight one = {.what = s->what,
                             .grade = s->grade,
                             .percent = s->percent,
                             .lo = s->lo,
                             .hi = s->hi,
                             .since_ms = s->since_ms,
                             .proof = s->proof,
                             .oldest = s->oldest,
                             .n_runs = s->n_runs};
    memcpy(one.runs, s->runs, sizeof one.runs);
    buf_add(out, &one, sizeof one);
    wire_add_text(out, s->node);
    wire_add_text(out, s->class);
    wire_add_text(out, s->metric);
    wire_add_text(out, s->text);
    wire_add_text(out, s->evidence);
}

struct wire_reader {
    const char *at, *end;
    bool bad;
};

static void wire_take(struct wire_reader *r, void *out, size_t n)
{
    if (r->bad || (size_t)(r->end - r->at) < n) {
        r->bad = true;
        return;
    }
    memcpy(out, r->at, n);
    r->at += n;
}

static const char *wire_text(struct wire_reader *r)
{
    const char *text = r->at, *end = r->bad ? NULL : memchr(text, 0, (size_t)(r->end - text));
    if (!end) {
        r->bad = true;
        return "";
    }
    r->at = end + 1;
    return text;
}

static void wire_take_sight(struct wire_reader *r, struct kept_sight *out)
{
    struct wire_sight one = {0};
    wire_take(r, &one, sizeof one);
    r->bad |= (unsigned)one.what >= KEPT_WHATS || (unsigned)one.grade >= KEPT_GRADES ||
              (unsigned)one.n_runs > NEWEST_RUNS;
    *out = (struct kept_sight){.what = one.what,
                               .grade = one.grade,
                               .percent = one.percent,
                               .lo = one.lo,
                               .hi = one.hi,
                               .since_ms = one.since_ms,
                               .proof = one.proof,
                               .oldest = one.oldest,
                               .n_runs = one.n_runs};
    memcpy(out->runs, one.runs, sizeof out->runs);
    out->node = wire_text(r);
    out->class = wire_text(r);
    out->metric = wire_text(r);
    out->text = wire_text(r);
    out->evidence = wire_text(r);
}

int judged_read(struct judged_lists *out, const char *bytes, size_t n, struct err *err)
{
    struct wire_reader r = {.at = bytes, .end = bytes + n};
    struct wire_judgement head = {0};
    *out = (struct judged_lists){0};
    wire_take(&r, &head, sizeof head);
    // Each takes a byte at least.
    if (r.bad || head.n_unseen < 0 || head.n_seen < 0 || (size_t)head.n_unseen > n ||
        (size_t)head.n_seen > n)
        return err_set(err, ERR_INTERNAL, "", "these bytes are no judgement");
    out->unseen = calloc((size_t)head.n_unseen + 1, sizeof *out->unseen);
    out->seen = calloc((size_t)head.n_seen + 1, sizeof *out->seen);
    if (!out->unseen || !out->seen) {
        judged_lists_fini(out);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a judgement");
    }
    for (int i = 0; i < head.n_unseen && !r.bad; i++) {
        wire_take(&r, &out->unseen[i].about, sizeof out->unseen[i].about);
        out->unseen[i].name = wire_text(&r);
        out->unseen[i].class = wire_text(&r);
    }
    for (int i = 0; i < head.n_seen && !r.bad; i++)
        wire_take_sight(&r, &out->seen[i]);
    out->judgement = (struct kept_judgement){.seen = out->seen,
                                             .unseen = out->unseen,
                                             .n_seen = head.n_seen,
                                             .n_unseen = head.n_unseen,
                                             .now_ms = head.now_ms};
    if (!r.bad && r.at == r.end)
        return 0;
    judged_lists_fini(out);
    return err_set(err, ERR_INTERNAL, "", "these bytes are no judgement");
}

void judged_lists_fini(struct judged_lists *l)
{
    free(l->seen);
    free(l->unseen);
    *l = (struct judged_lists){0};
}

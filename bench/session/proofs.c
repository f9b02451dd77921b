// SPDX-License-Identifier: Apache-2.0
// A cell is judged by its working set beside the last-level cache that its rank has. What is
// between the limits of proof_of() is left out.
#include "bench/session/proofs.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/str.h"
#include "bench/sampling/counters.h"

// The part of its last-level cache that a rank has.
static uint64_t proofs_cache_of(const struct session *s, int rank, bool shared)
{
    const struct slot *slot = s->board->slot;
    int sharers = 0;
    for (int r = 0; shared && r < s->comm->size; r++)
        sharers += slot[r].cpu_place.llc == slot[rank].cpu_place.llc;
    return slot[rank].llc_bytes / (uint64_t)(sharers ? sharers : 1);
}

static void proofs_widen(struct proofs *p, const struct cell *c, bool beyond)
{
    double misses = c->v[CELL_MISSES], ghz = c->v[CELL_CYCLES] / c->v[CELL_MEAN];
    if (beyond) {
        p->beyond_lo = p->beyond_hi > 0 ? fmin(p->beyond_lo, misses) : misses;
        p->beyond_hi = fmax(p->beyond_hi, misses);
    } else {
        p->within_hi = fmax(p->within_hi, misses);
    }
    p->walks |= isfinite(c->v[CELL_WALKS]);
    p->walks_hi = fmax(p->walks_hi, c->v[CELL_WALKS]); // NaN leaves it
    p->ghz_lo = p->ghz_hi > 0 ? fmin(p->ghz_lo, ghz) : ghz;
    p->ghz_hi = fmax(p->ghz_hi, ghz);
}

void proofs_add(struct proofs *p, const struct session *s, int rank, struct cell *cell,
                uint64_t bytes, bool shared, const char *fmt, ...)
{
    uint64_t llc = proofs_cache_of(s, rank, shared);
    enum proof proof = proof_of(cell->v[CELL_MISSES], bytes, llc);
    char name[80], cache[24];
    va_list ap;
    if (proof == PROOF_NONE)
        return;
    cell->v[CELL_CONFIRMED] = proof == PROOF_CONFIRMED;
    p->cells++;
    proofs_widen(p, cell, bytes > llc);
    if (proof == PROOF_CONFIRMED) {
        p->confirmed++;
        return;
    }
    if (p->wrong++)
        return;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    str_from_bytes(llc, cache, sizeof cache);
    snprintf(p->first, sizeof p->first,
             "%s has %.2f misses of the last-level cache per hop, although the working set is %s "
             "its part of that cache (%s)",
             name, cell->v[CELL_MISSES], proof == PROOF_CACHED ? "larger than" : "smaller than",
             cache);
}

void proofs_text(const struct proofs *p, char *out, size_t room)
{
    char beyond[80] = "", within[60] = "", walks[60] = "";
    if (p->beyond_hi > 0)
        snprintf(beyond, sizeof beyond, ", %.2f to %.2f misses per hop beyond it", p->beyond_lo,
                 p->beyond_hi);
    if (p->within_hi > 0)
        snprintf(within, sizeof within, ", at most %.2f within it", p->within_hi);
    if (p->walks)
        snprintf(walks, sizeof walks, ", at most %.2f page walks per hop", p->walks_hi);
    snprintf(out, room,
             "the CPU's counters confirm %d of %d cells against the last-level cache%s%s%s, %.2f "
             "to %.2f GHz",
             p->confirmed, p->cells, beyond, within, walks, p->ghz_lo, p->ghz_hi);
}

static int report_confirmed(const struct proofs *p, struct session *s, struct err *err)
{
    char text[400];
    proofs_text(p, text, sizeof text);
    return session_note(s, err, CONDITION_COUNTERS, -1, "%s", text);
}

int proofs_report(const struct proofs *p, struct session *s, struct err *err)
{
    if (p->confirmed && report_confirmed(p, s, err) < 0)
        return -1;
    if (!p->wrong)
        return 0;
    return session_note(s, err, CONDITION_COUNTERS_DISAGREE, -1,
                        "%d of %d cells are not what they say: %s%s", p->wrong, p->cells, p->first,
                        p->wrong > 1 ? "; and others" : "");
}

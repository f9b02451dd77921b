// SPDX-License-Identifier: Apache-2.0
// A judgement is sights, and names of what it could not see. All other findings were missed. Only
// what is certain opens at once; the rest waits until another measurement shows it again.
#include "fleet/judge/kept_findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const struct kept_what_info kept_whats[KEPT_WHATS] = {
    [KEPT_OUTLIER] = {"outlier", ABOUT_VERDICT},
    [KEPT_SLOWER] = {"slower", ABOUT_PAST},
    [KEPT_GROUP] = {"group", ABOUT_CLASS},
    [KEPT_DRIFT] = {"drift", ABOUT_DRIFT},
    [KEPT_STALE] = {"stale", ABOUT_FACTS},
    [KEPT_DOWN] = {"down", ABOUT_FACTS},
    [KEPT_REINSTALLED] = {"reinstalled", ABOUT_FACTS},
    [KEPT_DUPLICATE] = {"duplicate", ABOUT_FACTS},
    [KEPT_TWIN] = {"twin", ABOUT_FACTS},
    [KEPT_ALIEN] = {"alien", ABOUT_FACTS},
    [KEPT_REWOUND] = {"rewound", ABOUT_FACTS},
    [KEPT_CLOCK] = {"clock", ABOUT_FACTS},
    [KEPT_POISON] = {"poison", ABOUT_FACTS},
    [KEPT_VERSION] = {"version", ABOUT_FACTS},
};

#define DAY_MS ((int64_t)86400 * 1000)

int kept_what_find(const char *name)
{
    for (int i = 0; i < KEPT_WHATS; i++)
        if (strcmp(name, kept_whats[i].name) == 0)
            return i;
    return -1;
}

bool kept_of_class(enum kept_what what)
{
    return kept_whats[what].about & (ABOUT_CLASS | ABOUT_DRIFT);
}

void kept_list_fini(struct kept_list *l)
{
    interned_fini(&l->identities);
    free(l->list);
    free(l->names);
    *l = (struct kept_list){0};
}

int kept_list_add(struct kept_list *l, const struct kept_finding *one, const char *identity,
                  const char *name, struct err *err)
{
    int n = l->identities.n;
    if (n == l->room) {
        int room = l->room ? 2 * l->room : 64;
        void *list = realloc(l->list, (size_t)room * sizeof *l->list);
        if (list)
            l->list = list;
        void *names = list ? realloc(l->names, (size_t)room * sizeof *l->names) : NULL;
        if (!names)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for %d findings", room);
        l->names = names;
        l->room = room;
    }
    if (interned_add(&l->identities, identity, err) < 0)
        return -1;
    if (l->identities.n == n)
        return err_set(err, ERR_DAMAGED, "finding", "a finding is stored twice: %s", identity);
    l->list[n] = *one;
    snprintf(l->names[n], sizeof l->names[n], "%s", name);
    if (one->id > l->last_id)
        l->last_id = one->id;
    return 0;
}

// "outlier node017 <class>": what makes a finding the one it is. A class has several groups.
static void kept_identity(const struct kept_sight *s, char out[static KEPT_IDENTITY_MAX])
{
    snprintf(out, KEPT_IDENTITY_MAX, "%s %.64s %.64s %.70s", kept_whats[s->what].name, s->node,
             s->class, s->what == KEPT_GROUP ? s->metric : "");
}

// The end of the identity of a node's finding in the class, or the name alone.
static const char *kept_unseen_key(const struct kept_unseen *u, char out[static KEPT_IDENTITY_MAX])
{
    if (!u->class || !*u->class)
        return u->name;
    snprintf(out, KEPT_IDENTITY_MAX, "%.64s %.64s ", u->name, u->class);
    return out;
}

static void kept_move(struct kept_finding *f, enum kept_event event, int64_t now_ms)
{
    enum kept_state was = f->state;
    f->state = kept_states[was].after[event];
    // One that was marked while it was forming has not been open.
    bool opens = was == KEPT_NONE || was == KEPT_FORMING || was == KEPT_CLOSED ||
                 event == KEPT_RELAPSED || !f->opened_ms;
    if (f->state == KEPT_OPEN && opens) {
        f->opened_ms = now_ms;
        f->closed_ms = 0;
        f->times++;
    }
    if (f->state == KEPT_CLOSED && was != KEPT_CLOSED)
        f->closed_ms = now_ms;
}

// A node at the limit is found on some days and not on others. With each time that it was opened,
// twice as many days must show it, so that it is a few alarms in years and not one a fortnight.
static bool kept_confirmed(const struct kept_finding *f, const struct kept_sight *s)
{
    int days = f->times < KEPT_DOUBLED_MAX ? (1 << f->times) - 1 : (1 << KEPT_DOUBLED_MAX) - 1;
    return f->proof && s->proof != f->proof && s->proof - f->proof >= days * DAY_MS;
}

static enum kept_event kept_event_of(const struct kept_finding *f, const struct kept_sight *s)
{
    if (kept_whats[s->what].about != ABOUT_FACTS && s->grade != KEPT_SURE && !kept_confirmed(f, s))
        return KEPT_SEEN;
    return f->state == KEPT_FIXED && s->oldest > f->marked_ms ? KEPT_RELAPSED : KEPT_CONFIRMED;
}

// A mark would hold, a drain be put off, and a closed finding be kept, until the clock is there
// again: it counts as now.
static int64_t kept_not_ahead(int64_t at_ms, int64_t now_ms)
{
    return at_ms > now_ms + KEPT_AHEAD_MS ? now_ms : at_ms;
}

static void kept_see(struct kept_finding *f, const struct kept_sight *s, int64_t now_ms)
{
    f->opened_ms = kept_not_ahead(f->opened_ms, now_ms);
    f->marked_ms = kept_not_ahead(f->marked_ms, now_ms);
    kept_move(f, kept_event_of(f, s), now_ms);
    if (!f->proof)
        f->proof = s->proof;
    f->misses = 0;
    f->seen_ms = now_ms;
    f->grade = s->grade;
    f->sight = s;
    if (f->change != KEPT_NEW)
        f->change = KEPT_AGAIN;
}

static int kept_sight_add(struct kept_list *l, const struct kept_sight *s, int64_t now_ms,
                          struct err *err)
{
    char identity[KEPT_IDENTITY_MAX];
    kept_identity(s, identity);
    int at = interned_find(&l->identities, identity);
    if (at < 0 && l->identities.n >= KEPT_MAX) {
        l->left_out++;
        return 0;
    }
    if (at < 0) {
        const struct kept_finding fresh = {
            .id = l->last_id + 1, .what = s->what, .found_ms = now_ms, .change = KEPT_NEW};
        at = l->identities.n;
        if (kept_list_add(l, &fresh, identity, kept_of_class(s->what) ? s->class : s->node, err) <
            0)
            return -1;
    }
    int times = l->list[at].times;
    kept_see(&l->list[at], s, now_ms);
    l->opened += l->list[at].times - times;
    return 0;
}

static void kept_miss(struct kept_finding *f, int64_t now_ms)
{
    if (f->state == KEPT_CLOSED && !f->proof) {
        int64_t closed_ms = kept_not_ahead(f->closed_ms, now_ms);
        if (closed_ms != f->closed_ms)
            f->change = KEPT_MISSING;
        f->closed_ms = closed_ms;
        return;
    }
    f->change = KEPT_MISSING;
    if (++f->misses < KEPT_MISSES)
        return;
    kept_move(f, KEPT_MISSED, now_ms);
    f->misses = 0;
    f->proof = 0;
    if (f->state == KEPT_NONE)
        f->change = KEPT_DELETED;
}

int kept_judge(struct kept_list *l, const struct kept_judgement *j, struct err *err)
{
    struct interned CLEANUP(interned_fini) names = {0};
    CLEANUP_MEM unsigned *about = calloc((size_t)j->n_unseen + 1, sizeof *about);
    if (!about)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a judgement");
    l->opened = l->left_out = 0;
    for (int i = 0; i < j->n_unseen; i++) {
        char key[KEPT_IDENTITY_MAX];
        int at = interned_add(&names, kept_unseen_key(&j->unseen[i], key), err);
        if (at < 0)
            return -1;
        about[at] |= j->unseen[i].about;
    }
    for (int i = 0; i < j->n_seen; i++)
        if (kept_sight_add(l, &j->seen[i], j->now_ms, err) < 0)
            return -1;
    for (int i = 0; i < l->identities.n; i++) {
        int at = interned_find(&names, l->names[i]);
        const char *rest = strchr(l->identities.list[i], ' ');
        int in_class = rest ? interned_find(&names, rest + 1) : -1;
        unsigned unseen = (at < 0 ? 0 : about[at]) | (in_class < 0 ? 0 : about[in_class]);
        if (!l->list[i].sight && !(unseen & kept_whats[l->list[i].what].about))
            kept_miss(&l->list[i], j->now_ms);
        // The next number follows the largest: it stays, or another finding would get the number.
        if (l->list[i].change == KEPT_DELETED && l->list[i].id == l->last_id)
            l->list[i].change = KEPT_SAME;
    }
    return 0;
}

int kept_mark(struct kept_finding *f, enum kept_event event, int64_t now_ms, struct err *err)
{
    if (f->state == KEPT_CLOSED)
        return err_set(err, ERR_CONFLICT, "state",
                       "the finding is closed: it is not seen any more");
    kept_move(f, event, now_ms);
    f->marked_ms = now_ms;
    f->change = KEPT_MARKED;
    return 0;
}

struct kept_counts kept_count(const struct kept_list *l)
{
    struct kept_counts c = {0};
    for (int i = 0; i < l->identities.n; i++) {
        const struct kept_finding *f = &l->list[i];
        if (f->change == KEPT_DELETED)
            continue;
        c.states[f->state]++;
        c.open[f->what][f->grade] += f->state == KEPT_OPEN;
        c.unsettled += f->change == KEPT_MISSING && f->misses > 0;
    }
    return c;
}

// SPDX-License-Identifier: Apache-2.0
// A reading stays as the text that came, cut into fields in place. The lists are sorted, so their
// union is a walk through all of them at once.
#include "fleet/collect/naming.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "core/os/child_output.h"
#include "nodes/program.h"

// What a source named.
struct reading {
    struct buf text; // the fields are in it
    size_t bytes;    // of the text as it came
    uint64_t hash;
    struct named_node *list;
    int n;
    int used; // of them, the first ones: all, unless there is no room for all sources
};

struct source {
    struct naming *naming;
    struct naming_source shown;
    const char *text; // the source itself, which may have a key in its URL
    enum source_kind kind;
    struct loop_timer *timer;  // the next reading
    struct child_output child; // reads it
    bool again;                // requested while it was being read
    struct reading reading;    // the last one that was believed
    struct reading doubted;    // the last one, if it was not
};

struct naming {
    struct loop *loop;
    const struct fleetd_config *c;
    naming_fn *named;
    void *ctx;
    bool said; // what was read last
    int n;
    struct source list[FLEETD_SOURCES_MAX];
    char texts[FLEETD_SOURCES_MAX][FLEETD_SOURCE_MAX], shown[FLEETD_SOURCES_MAX][FLEETD_SOURCE_MAX];
    char problem[NAMING_TEXT]; // of no source alone: there are none, or they name too many nodes
};

// ---- Union --------------------------------------------------------------------------------------

static void reading_fini(struct reading *r)
{
    buf_free(&r->text);
    free(r->list);
    *r = (struct reading){0};
}

static const char *first_said(const char *was, const char *is)
{
    return *was ? was : is;
}

// A node that pushes is contacted at no address, however many sources name one.
static const char *other_said(const char *was, const char *is)
{
    return strcmp(is, ANNOUNCED_URL) == 0 ? is : first_said(was, is);
}

// That a node is behind another collector matters only if no other source names it.
static void union_add(struct naming_node *to, const struct named_node *n, int source)
{
    struct named_node was = to->said;
    if (to->sources && str_starts(n->url, BEHIND_URL)) {
        to->sources |= UINT32_C(1) << source;
        return;
    }
    if (to->sources && str_starts(was.url, BEHIND_URL))
        was.url = was.state = "";
    if (!to->sources)
        *to = (struct naming_node){.said = *n, .other_url = ""};
    else if (*n->url && *was.url && strcmp(n->url, was.url) != 0)
        to->other_url = other_said(to->other_url, n->url);
    if (to->sources)
        to->said = (struct named_node){was.name,
                                       first_said(was.url, n->url),
                                       first_said(was.class_hint, n->class_hint),
                                       first_said(was.state, n->state),
                                       first_said(was.partitions, n->partitions),
                                       first_said(was.reason, n->reason)};
    to->sources |= UINT32_C(1) << source;
}

// The first name that is not taken yet. NULL: all are.
static const char *union_next(const struct naming *n, const int *at)
{
    const char *first = NULL;
    for (int i = 0; i < n->n; i++) {
        const struct reading *r = &n->list[i].reading;
        if (at[i] < r->used && (!first || strcmp(r->list[at[i]].name, first) < 0))
            first = r->list[at[i]].name;
    }
    return first;
}

// *whole: there was room for all names.
static int union_make(const struct naming *n, struct naming_node *out, int room, bool *whole)
{
    int at[FLEETD_SOURCES_MAX] = {0}, count = 0;
    for (const char *name; count < room && (name = union_next(n, at)); count++) {
        out[count].sources = 0;
        for (int i = 0; i < n->n; i++) {
            const struct reading *r = &n->list[i].reading;
            for (; at[i] < r->used && strcmp(r->list[at[i]].name, name) == 0; at[i]++)
                union_add(&out[count], &r->list[at[i]], i);
        }
    }
    *whole = !union_next(n, at);
    return count;
}

// The same room for each source, and what one does not need for the others: whatever a source
// names, it takes no place of the nodes of another one.
static void union_share(struct naming *n, int room)
{
    bool fits[FLEETD_SOURCES_MAX] = {false};
    for (int open = n->n, before = 0; open && open != before;) {
        int share = room / open;
        before = open;
        for (int i = 0; i < n->n; i++) {
            struct reading *r = &n->list[i].reading;
            if (fits[i])
                continue;
            fits[i] = r->n <= share;
            r->used = fits[i] ? r->n : share;
            open -= fits[i];
            room -= fits[i] ? r->n : 0;
        }
    }
}

// Names a source of which nodes are left out.
static void union_explain(struct naming *n)
{
    for (int i = 0; i < n->n && !*n->problem; i++) {
        const struct source *s = &n->list[i];
        if (s->reading.used < s->reading.n)
            snprintf(n->problem, sizeof n->problem,
                     "the sources name more than %d nodes: of %.80s the first %d of %d count",
                     NAMING_NODES_MAX, s->shown.source, s->reading.used, s->reading.n);
    }
}

static bool announce_unread(const struct naming *n)
{
    for (int i = 0; i < n->n; i++)
        if (n->list[i].kind == SOURCE_ANNOUNCE && !n->list[i].shown.read_ms)
            return true;
    return false;
}

// Nothing before it is known which nodes push: they would be contacted.
static void naming_say(struct naming *n)
{
    int room = 1;
    bool whole = true, all_fit;
    n->said = false;
    if (announce_unread(n))
        return;
    for (int i = 0; i < n->n; i++) {
        struct source *s = &n->list[i];
        s->reading.used = s->reading.n;
        room += s->reading.n;
        whole = whole && s->shown.read_ms;
    }
    room = room < NAMING_NODES_MAX ? room : NAMING_NODES_MAX;
    n->problem[0] = '\0';
    CLEANUP_MEM struct naming_node *all = calloc((size_t)room, sizeof *all);
    if (!all)
        return;
    int count = union_make(n, all, room, &all_fit);
    if (!all_fit) {
        union_share(n, room);
        union_explain(n);
        count = union_make(n, all, room, &all_fit);
    }
    n->said = n->named(n->ctx, all, count, whole);
}

// ---- What was read ------------------------------------------------------------------------------

static void source_failed(struct source *s, const char *why)
{
    bool held = !s->shown.read_ms && s->kind == SOURCE_ANNOUNCE;
    char text[NAMING_TEXT];
    snprintf(text, sizeof text, "%s%s",
             held ? "no node is contacted until the tokens can be read: " : "", why);
    if (strcmp(s->shown.problem, text) != 0)
        log_event(LOG_LVL_WARN, "source", "source=\"%s\" text=\"%s\"",
                  log_quote(s->shown.source).text, log_quote(text).text);
    memcpy(s->shown.problem, text, sizeof text);
    loop_timer_set(s->timer, NAMING_AGAIN_MS);
}

static int reading_too_large(const struct source *s, int n, struct err *err)
{
    return s->kind == SOURCE_ANNOUNCE
               ? err_set(err, ERR_TOO_LARGE, "",
                         "the tokens of scope push name %d nodes together, more than %d; revoke "
                         "some (numaprobe token revoke NAME)",
                         n, NAMING_NODES_MAX)
               : err_set(err, ERR_TOO_LARGE, "",
                         "it names %d nodes, more than the %d that there is room for", n,
                         NAMING_NODES_MAX);
}

// Takes the text. The lines must be sorted, as naming_read() leaves them.
static int reading_cut(const struct source *s, struct reading *r, struct buf *text, struct err *err)
{
    int room = 0;
    for (size_t i = 0; i < text->len; i++)
        room += text->data[i] == '\n';
    r->bytes = text->len;
    r->hash = hash_words(text->data, text->len);
    r->text = *text;
    *text = BUF_INIT;
    r->list = calloc((size_t)room + 1, sizeof *r->list);
    if (!r->list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", room);
    if (room > NAMING_NODES_MAX)
        return reading_too_large(s, room, err);
    char *rest = r->text.len ? r->text.data : NULL;
    for (char *line; r->n < room && (line = strsep(&rest, "\n")); r->n++)
        if (named_read(&r->list[r->n], line, err) < 0)
            return -1;
        else if (r->n && strcmp(r->list[r->n - 1].name, r->list[r->n].name) > 0)
            return err_set(err, ERR_INVALID, "", "its nodes came in a wrong order");
    return 0;
}

// How many nodes of `was` are in `is` too. Both are sorted.
static int reading_kept(const struct reading *was, const struct reading *is)
{
    int kept = 0;
    for (int i = 0, at = 0; i < was->n; i++) {
        while (at < is->n && strcmp(is->list[at].name, was->list[i].name) < 0)
            at++;
        kept += at < is->n && strcmp(is->list[at].name, was->list[i].name) == 0;
    }
    return kept;
}

static bool reading_lost_half(const struct reading *was, const struct reading *is)
{
    return 2 * reading_kept(was, is) < was->n;
}

// A fleet whose nodes change between any two lists must be believed some time, so the two need not
// be the same. But no list confirms an empty one, unless it is empty too.
static bool reading_confirms(const struct reading *doubted, const struct reading *is)
{
    return doubted->list && !reading_lost_half(doubted, is) && !reading_lost_half(is, doubted);
}

static void source_is_read(struct source *s)
{
    reading_fini(&s->doubted);
    s->shown.problem[0] = '\0';
    s->shown.nodes = s->reading.n;
    s->shown.read_ms = clock_wall_ms();
    s->shown.read_mono_ms = clock_mono_ms();
    loop_timer_set(s->timer, NAMING_EVERY_MS);
}

static void source_believe(struct source *s, struct reading *r)
{
    reading_fini(&s->reading);
    s->reading = *r;
    *r = (struct reading){0};
    source_is_read(s);
    naming_say(s->naming);
}

// Nearly each reading. Saying 10,000 names again takes 20 ms of the loop. A source that forges the
// hash keeps only its own list as it was.
static bool source_says_the_same(const struct source *s, const struct buf *text)
{
    return s->naming->said && s->shown.read_ms && text->len == s->reading.bytes &&
           hash_words(text->data, text->len) == s->reading.hash;
}

// Takes the reading.
static void source_doubt(struct source *s, struct reading *r)
{
    char why[NAMING_TEXT];
    snprintf(
        why, sizeof why,
        "it names %d node%s, and %d of the %d that it named before; believed if it says so again",
        r->n, str_plural(r->n), reading_kept(&s->reading, r), s->reading.n);
    reading_fini(&s->doubted);
    s->doubted = *r;
    *r = (struct reading){0};
    source_failed(s, why);
}

static void source_use(struct source *s, struct buf *text)
{
    struct reading r CLEANUP(reading_fini) = {0};
    struct err err;
    if (!buf_ok(text))
        source_failed(s, "it names more nodes than there is memory or room for");
    else if (source_says_the_same(s, text))
        source_is_read(s);
    else if (reading_cut(s, &r, text, &err) < 0)
        source_failed(s, err.text);
    else if (reading_lost_half(&s->reading, &r) && !reading_confirms(&s->doubted, &r))
        source_doubt(s, &r);
    else
        source_believe(s, &r);
}

// The child's last words: "!cannot read /etc/nodes".
static void source_refused(struct source *s, const struct buf *text)
{
    char why[NAMING_TEXT];
    child_output_line(text, why, sizeof why);
    source_failed(s, *why == '!' ? why + 1 : "the process that reads it ended");
}

static void reading_ended(void *ctx, const struct child_output_end *end)
{
    struct source *s = ctx;
    if (end->late)
        source_failed(s, "reading it took longer than it may");
    else if (end->status != 0)
        source_refused(s, end->text);
    else
        source_use(s, end->text);
    if (s->again)
        loop_timer_set(s->timer, 0);
    s->again = false;
}

static int start_reading(struct source *s, struct err *err)
{
    const struct child_output_use use = {.most = NAMING_BYTES_MAX,
                                         .limit_ms = NAMING_LIMIT_MS,
                                         .variables = program_variables, // for sinfo
                                         .ended = reading_ended,
                                         .ctx = s};
    CLEANUP_MEM struct fleetd_config *c = malloc(sizeof *c); // exec wants words that it may change
    CLEANUP_FD int source = child_text(s->text, err);        // no argument, which others could see
    char program[] = "numaprobe-fleetd", option[] = "--naming";
    if (source < 0)
        return -1;
    if (!c)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to read it");
    *c = *s->naming->c;
    char *argv[] = {program,        option,
                    c->groups_file, c->group_command,
                    c->node_ca,     c->node_certificate,
                    c->node_key,    c->node_token_file,
                    c->hosts_file,  NULL};
    return child_output_start(&s->child, s->naming->loop, &use, argv, source, err);
}

static void on_source_timer(void *ctx, uint32_t events)
{
    struct source *s = ctx;
    struct err err;
    (void)events;
    if (start_reading(s, &err) < 0)
        source_failed(s, err.text);
}

// ---- Life ---------------------------------------------------------------------------------------

static int naming_open_source(struct naming *n, int i, struct err *err)
{
    struct source *s = &n->list[i];
    s->naming = n;
    s->text = n->texts[i];
    s->shown.source = fleetd_source_shown(s->text, n->shown[i]);
    s->timer = loop_timer_new(n->loop, on_source_timer, s, err);
    return s->timer && source_split(s->text, &s->kind, err) ? 0 : -1;
}

struct naming *naming_new(struct loop *loop, const struct fleetd_config *c, naming_fn *named,
                          void *ctx, struct err *err)
{
    struct naming *n = calloc(1, sizeof *n);
    if (!n) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the sources");
        return NULL;
    }
    n->loop = loop;
    n->c = c;
    n->named = named;
    n->ctx = ctx;
    int count = fleetd_sources(c, n->texts, err);
    for (int i = 0; i < count; i++, n->n++)
        if (naming_open_source(n, i, err) < 0)
            count = -1;
    if (count < 0) {
        naming_free(n);
        return NULL;
    }
    if (!count)
        snprintf(n->problem, sizeof n->problem,
                 "no source of nodes is set: source, nodes, hostfile or from_slurm");
    naming_again(n);
    return n;
}

void naming_free(struct naming *n)
{
    for (int i = 0; n && i < n->n; i++) {
        struct source *s = &n->list[i];
        child_output_stop(&s->child);
        loop_timer_free(s->timer);
        reading_fini(&s->reading);
        reading_fini(&s->doubted);
    }
    free(n);
}

void naming_again(struct naming *n)
{
    for (int i = 0; i < n->n; i++)
        if (n->list[i].child.pid)
            n->list[i].again = true;
        else
            loop_timer_set(n->list[i].timer, 0);
}

const struct naming_source *naming_source_at(const struct naming *n, int i)
{
    return i < n->n ? &n->list[i].shown : NULL;
}

const struct naming_source *naming_slurm(const struct naming *n)
{
    const struct naming_source *oldest = NULL;
    for (int i = 0; i < n->n; i++)
        if (n->list[i].kind == SOURCE_SLURM &&
            (!oldest || n->list[i].shown.read_mono_ms < oldest->read_mono_ms))
            oldest = &n->list[i].shown;
    return oldest && oldest->read_ms ? oldest : NULL;
}

bool naming_slurm_known(const struct naming *n)
{
    const struct naming_source *s = naming_slurm(n);
    return s && clock_mono_ms() - s->read_mono_ms < NAMING_SLURM_MS;
}

bool naming_begins(const struct naming *n)
{
    for (int i = 0; i < n->n; i++)
        if (!n->list[i].shown.read_ms && !*n->list[i].shown.problem)
            return true;
    return false;
}

const char *naming_announce_problem(const struct naming *n)
{
    for (int i = 0; i < n->n; i++)
        if (n->list[i].kind == SOURCE_ANNOUNCE)
            return n->list[i].shown.problem;
    return NULL;
}

const char *naming_problem(const struct naming *n)
{
    for (int i = 0; i < n->n; i++)
        if (*n->list[i].shown.problem)
            return n->list[i].shown.problem;
    return n->problem;
}

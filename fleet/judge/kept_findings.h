// SPDX-License-Identifier: Apache-2.0
// Findings that are kept, and what a judgement changes in them. A finding is the same one as before
// if it says the same of the same node (or class): its worst metric may be another one now. Pure:
// the store reads the rows, and writes what has changed (fleet/store/findings.h).
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "analysis/peers/interned.h"
#include "analysis/peers/newest.h"
#include "fleet/judge/finding_states.h"

enum kept_what {
    KEPT_OUTLIER,
    KEPT_SLOWER,
    KEPT_GROUP,
    KEPT_DRIFT,
    KEPT_STALE,
    KEPT_DOWN,
    KEPT_REINSTALLED,
    KEPT_TWIN,
    KEPT_DUPLICATE,
    KEPT_ALIEN,
    KEPT_REWOUND,
    KEPT_CLOCK,
    KEPT_POISON,
    KEPT_VERSION,
    KEPT_WHATS
};
// What a finding is about, and so what must be known to miss it.
enum kept_about {
    ABOUT_VERDICT = 1, // what the node measured beside its peers
    ABOUT_CLASS = 2,   // what a class measured
    ABOUT_FACTS = 4,   // what the node responds
    ABOUT_DRIFT = 8,   // how the days of a class differ
    ABOUT_PAST = 16,   // what the node measured beside what it measured before
};
struct kept_what_info {
    const char *name; // stable, in JSON: "outlier"
    enum kept_about about;
};
extern const struct kept_what_info kept_whats[KEPT_WHATS];
int kept_what_find(const char *name);    // -1: none
bool kept_of_class(enum kept_what what); // and not of a node

enum {
    KEPT_MISSES = 3,         // judgements in a row without a finding close it
    KEPT_DOUBLED_MAX = 5,    // times: then 31 days must show a suspect again
    KEPT_MAX = 100000,       // rows
    KEPT_CLOSED_DAYS = 400,  // a closed one is deleted after so many days (fleet/store/findings.h)
    KEPT_AHEAD_MS = 3600000, // what is later than now by more: the clock was ahead then
    KEPT_GRADES = 3,         // of analysis/peers/peers.h: 0 none (groups), 1 suspect, 2 sure
    KEPT_SURE = 2,
    KEPT_NOTE_MAX = 500,     // bytes of a note
    KEPT_TEXT_MAX = 500,     // bytes of a sentence
    KEPT_IDENTITY_MAX = 220, // bytes
};

// What a judgement found. Texts are borrowed.
struct kept_sight {
    enum kept_what what;
    int grade;
    const char *node, *class, *metric; // "": none
    const char *text;                  // one sentence
    const char *evidence;              // a JSON object
    double percent, lo, hi;            // NaN: not known
    int64_t since_ms;                  // 0: not known
    int64_t proof;                     // UTC, ms: the newest measurement of the node or class
    int64_t oldest; // UTC, ms: when the oldest run was measured that it rests on; 0: not known
    int n_runs;
    int64_t runs[NEWEST_RUNS]; // of a node that is slower: those, by number on the node
};
// What a judgement could not see: findings of this node or class stay as they are.
struct kept_unseen {
    const char *name;  // borrowed
    const char *class; // borrowed; only those of the node in this class; "", NULL: all
    unsigned about;    // of enum kept_about
};

enum kept_change { KEPT_SAME, KEPT_MISSING, KEPT_MARKED, KEPT_AGAIN, KEPT_NEW, KEPT_DELETED };
struct kept_finding {
    int64_t id;
    enum kept_what what;
    enum kept_state state;
    int grade;
    int times;                                                  // that it was opened
    int misses;                                                 // judgements in a row
    int64_t found_ms, seen_ms, opened_ms, closed_ms, marked_ms; // UTC; 0: never
    int64_t proof;                  // of its first sight in this episode; 0: none
    enum kept_change change;        // since it was read
    const struct kept_sight *sight; // borrowed; of this judgement; NULL: it was not seen
};

struct kept_list {
    struct interned identities; // by number in `list`
    struct kept_finding *list;  // owned
    char (*names)[66];          // of the node, or the class of a finding about one; owned
    int room;
    int64_t last_id;
    int left_out; // sights without room
    int opened;   // alarms of the last judgement
};
void kept_list_fini(struct kept_list *l);
// As it was stored. ERR_NO_MEMORY, as below.
int kept_list_add(struct kept_list *l, const struct kept_finding *one, const char *identity,
                  const char *name, struct err *err);

struct kept_judgement {
    const struct kept_sight *seen;
    const struct kept_unseen *unseen;
    int n_seen, n_unseen;
    int64_t now_ms; // UTC
};
int kept_judge(struct kept_list *l, const struct kept_judgement *j, struct err *err);
// A person's mark. ERR_CONFLICT: the finding is closed.
int kept_mark(struct kept_finding *f, enum kept_event event, int64_t now_ms, struct err *err);

struct kept_counts {
    int open[KEPT_WHATS][KEPT_GRADES];
    int states[KEPT_STATES];
    int unsettled; // missed, and not closed yet: the next judgements decide
};
struct kept_counts kept_count(const struct kept_list *l);

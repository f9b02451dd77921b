// SPDX-License-Identifier: Apache-2.0
// What the collector and the process that stores send each other. Both are the same program, so
// structures go as they are.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "fleet/store/archive.h"
#include "fleet/store/findings.h"
#include "fleet/store/store.h"

enum {
    INGEST_FD = 3,       // of the process
    INGEST_STORE_FD = 4, // where the store is: it may have a password
    INGEST_TEXT = 200,
    INGEST_AS_SAID = -1,
    // As the status of a whole run, which no node responds: it has ended the process, twice; and
    // why it cannot come.
    INGEST_IT_ENDS = -1,
    INGEST_TOO_LARGE = -2,
    INGEST_NOT_PUSHED = -3,
};

enum ingest_kind {
    INGEST_PAGE,
    INGEST_FACTS,
    INGEST_GONE,
    INGEST_OWNERS, // the list of fleet_store_owners()
    INGEST_CAMPAIGN,
    INGEST_WHOLE,
    INGEST_JUDGED,  // a judgement (judged_wire.h)
    INGEST_MARK,    // struct ingest_mark
    INGEST_DRAINED, // struct ingest_drained
};

struct ingest_drained {
    int64_t id, now_ms; // of the finding; UTC
};

struct ingest_mark {
    int64_t id, now_ms;
    enum kept_event event;
    bool noted;
    char note[KEPT_NOTE_MAX + 1], by[80]; // by: as access_write_client() writes it
};

// From the process. `kind` says which members count.
enum ingest_report_kind {
    INGEST_PLACE, // node, collector, history, next, at_ms, outcome (a twin): at the start, where it
                  // stands
    INGEST_COUNTED,    // judged: at the start, and before JUDGED and MARK are confirmed
    INGEST_READY,      // all places were sent
    INGEST_STORED,     // node, outcome, next, more, stored, others, other, history, at_ms: a page
    INGEST_REFUSED,    // node, text, code, member: what it sent cannot be read or stored
    INGEST_WANTED_RUN, // node, other (its name when the run was stored), next (its number in the
                       // feed), run (its number): a whole run
    INGEST_WANTED,     // node, hash: a document of facts that only nodes have
    INGEST_RETAINED,   // of (WHOLE: the archive; JUDGED: closed findings), next (how many were
                       // deleted), more (the next days delete others); code and text: what waits,
                       // and is tried again
    INGEST_DELETING,   // what is too old; nothing is confirmed until INGEST_RETAINED
    // opened, text: by the collector itself, where the process has confirmed nothing for
    // INGEST_STALL_MS; with an empty text: it has confirmed something since.
    INGEST_STALLED,
    INGEST_FAILED, // text, code, opened: the store cannot be used; the process ends
    // fleet/collect/campaign_wire.h; next is the campaign's number. The body is a campaign, at the
    // start; without one, the last number. Or what is known of some of its nodes.
    INGEST_CAMPAIGN_WAS,
    INGEST_CAMPAIGN_FACTS,
};
struct ingest_report {
    enum ingest_report_kind kind;
    enum ingest_kind of; // STORED, REFUSED: what was sent
    enum fleet_outcome outcome;
    enum err_code code;
    bool collector;     // `node` is the name of another collector; also of STORED and REFUSED
    bool more, opened;  // opened: the store could be opened, and failed later
    bool given_up;      // STORED of WHOLE: run `next` is not requested again; text says why
    int stored, others; // runs
    int notes;          // of the page
    int64_t lost;       // of a collector: struct fleet_ack
    int unkept;         // of STORED: struct fleet_ack
    int64_t run;
    int64_t next, at_ms, newest_ms; // at: received; newest: measured, of the page's runs
    char node[64], other[64], history[40], hash[65], version[32];
    char text[INGEST_TEXT];
    struct fleet_tally judged;
    char member[64];  // REFUSED: at fault
    uint32_t bytes;   // of a body behind it
    const char *body; // of the receiver: valid during its call
};

// To the process: a head, then so many bytes of body.
struct ingest_head {
    uint32_t bytes; // of the body
    enum ingest_kind kind;
    int skew_ms;
    int status;                 // WHOLE: of the node's response; 0: there is none
    bool collector;             // PAGE: `node` is the name of another collector
    bool alone;                 // nothing follows before it is confirmed
    int64_t after, received_ms; // after: INGEST_AS_SAID, where the page itself says
    char node[64];
    char hash[65];  // FACTS: of the facts that were requested
    char under[64]; // WHOLE: the name that its node had when the run was stored
};

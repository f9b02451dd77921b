// SPDX-License-Identifier: Apache-2.0
// What the collector and the process that stores send each other about campaigns, behind the heads
// of fleet/collect/ingest_wire.h. Structures go as they are; texts follow them.
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum campaign_by { CAMPAIGN_BY_NONE, CAMPAIGN_BY_RACK, CAMPAIGN_BY_CLASS, CAMPAIGN_BY_PREFIX };

enum { CAMPAIGN_NAME = 64, CAMPAIGN_WHY = 160, CAMPAIGN_FACTS_MOST = 500 };

// To the process (INGEST_CAMPAIGN): this, the request as JSON, the nodes as a set, the changes.
// From it at its start (INGEST_CAMPAIGN_WAS): the same without changes.
struct campaign_head {
    int64_t id;
    char name[CAMPAIGN_NAME], by[CAMPAIGN_NAME], why[CAMPAIGN_WHY];
    int state, round;
    int64_t created_ms, round_ms, until_ms;
    int n, running, done, failed, skipped;
    double spent_s, round_s;
    uint32_t request_bytes, nodes_bytes, changes;
    // What the process does.
    bool keep;             // writes it; else it is a dry run
    bool facts;            // sends what is known of the nodes, before it confirms
    int each_by;           // enum campaign_by: the group of a node
    char benchmark[24];    // whose runs count
    char groups_file[256]; // that names the racks
};

struct campaign_change {
    char node[64], why[CAMPAIGN_WHY];
    int state, round; // enum probe_state
    int64_t requested_ms, ended_ms, run;
    double seconds; // NaN: not known
};

// From the process (INGEST_CAMPAIGN_FACTS), many at once.
struct campaign_fact {
    char node[64], group[66], class[66];
    int64_t newest_ms;  // its newest run of the benchmark; 0: none
    double past_s;      // how long that took; 0: not known
    int64_t newest_run; // its number on the node
    bool newest_failed;
    // Its row; round 0: none.
    int state, round;
    int64_t requested_ms, ended_ms, run;
};

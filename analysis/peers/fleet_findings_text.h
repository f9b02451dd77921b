// SPDX-License-Identifier: Apache-2.0
// Findings as a JSON document and as text, so that every program says the same. Pure.
#pragma once
#include "analysis/peers/fleet_findings.h"
#include "base/buf.h"
#include "base/jsonw.h"

// The document: {"evaluated":…,"tested_nodes":…,"left_out":{…},"findings":[…]}.
void fleet_findings_write_json(const struct fleet_findings *list, const struct fleet *f,
                               struct jsonw *w, const char *key);

// One of them, as it stands in that document.
void fleet_finding_write_json(const struct fleet_finding *one, const struct fleet *f,
                              struct jsonw *w, const char *key);

// The cells of a table's row, in plain text.
struct fleet_finding_cells {
    char value[32]; // "148.9 ns"
    char peers[32]; // "140.1"
    char diff[40];  // "+6.3 % ±0.6"
    char also[24];  // "10/30"
    char since[24]; // "18 Nov", "today", "-"
};
void fleet_finding_cells(const struct fleet_finding *one, const struct fleet *f,
                         struct fleet_finding_cells *out);
// "node[061-078]"
void fleet_finding_nodes(const struct fleet_finding *one, const struct fleet *f, struct buf *out);
// "bios_version 1.8.2 (97 % have 1.9.0)", or "-".
void fleet_finding_differs(const struct fleet_finding *one, struct buf *out);
// "18 nodes node[061-078]: latency.local.dram.median_ns +8.1 %, …": a finding in one sentence.
void fleet_finding_sentence(const struct fleet_finding *one, const struct fleet *f,
                            struct buf *out);
// "no node is as far on the fast side", or how many.
void fleet_findings_mirror_text(const struct fleet_findings *list, struct buf *out);
// "2 runs were disturbed; 4 nodes have fewer than 3 runs", or nothing.
void fleet_findings_left_out_text(const struct fleet_findings *list, struct buf *out);

// SPDX-License-Identifier: Apache-2.0
// One run with everything about it: what export writes (api/resources/export.h has the form) and
// import restores. Pure.
#pragma once
#include "model/fingerprint.h"
#include "model/matrix.h"
#include "model/run.h"

#define RUN_DOCUMENT_FORMAT "numaprobe-run"
enum { RUN_DOCUMENT_VERSION = 1 }; // members may come; a change of meaning is a new version

struct run_document {
    struct run run;                 // final; id and seq 0; created_ms where it was first stored
    char *class_json, *config_json; // as facts_write_json; owned; NULL: not known
    char *topology_xml;             // owned; NULL: not there, though run.topology_hash may be
    char *log;                      // owned; NULL: none
    bool undated;                   // when it was measured is not known
    int n_matrices;
    struct matrix *matrices; // owned
    int n_ranks;
    struct rank_info *ranks; // owned
};

void run_document_fini(struct run_document *w);
// Reads what run_document_write wrote, and then run_document_check. ERR_INVALID names the member;
// *out is untouched then. Hashes are computed again: a text that was changed on the way is refused.
int run_document_from_json(struct run_document *out, const struct json *object, struct err *err);
void run_document_count(struct run_document *w); // ranks and cells into the run
// Are the numbers of such a run? Matrices fit the spec and are complete if it succeeded, values are
// above 0, no rank, matrix or axis value is there twice. ERR_INVALID.
int run_document_check(const struct run_document *w, struct err *err);
// Names the content: node, when it was measured (unless `undated`), how, ranks and numbers; not the
// label or where it was stored. The same run read from another copy has the same key.
int run_document_key(const struct run_document *w, char key[static 65], struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Runs that were measured elsewhere; core/store/stage.h stores large ones in pieces.
#pragma once
#include "core/store/runs.h"

// A run measured elsewhere; the state of the result is final.
struct run_import {
    const struct spec *spec;
    const char *node, *label; // label "" for none
    int64_t measured_ms;
    const struct run_result *result;
    // What an export brings along; 0 or NULL: not known.
    const char *key; // of its content (run_document_key): the same content is stored once
    int64_t started_ms;
    const char *plan_json;
    const char *class_hash, *class_json, *config_hash, *config_json; // all four or none
    const char *topology_hash, *topology_xml; // the hash alone counts if that topology is stored
};
// All or none, in one transaction. again[k]: run k was there already, imported (the same key) or
// measured here (the same node and times); ids[k] is that one.
int store_runs_import(struct store *s, const struct run_import *list, int n, int64_t *ids,
                      bool *again, struct err *err);
// The run that an import would find, as above: 1 found, 0 none, -1.
int store_import_find(struct store *s, const struct run_import *i, int64_t *id, struct err *err);

// Inside the store, in a transaction.
int store_import_put(struct store *s, const struct run_import *i, const struct store_number *as,
                     int64_t *id, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// What the machine was: two sets of facts. The class key says which kind of machine it is (two
// nodes with one class may be compared); the config key how it is set up (what may explain a
// difference).
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "base/jsonw.h"

enum { FACTS_MAX = 64, FACT_NAME_MAX = 64, FACT_VALUE_MAX = 512 };

struct fact {
    const char *name; // from a const table: "cpu_model", "thp_enabled"
    char value[FACT_VALUE_MAX];
};

struct facts {
    int n;
    struct fact list[FACTS_MAX];
    char hash[65]; // SHA-256 of "name=value\n"…, lower-case hex; set by facts_seal
};

struct fingerprint {
    struct facts machine_class;
    struct facts config;
};

__attribute__((format(printf, 3, 4))) void facts_add(struct facts *f, const char *name,
                                                     const char *fmt, ...);
void facts_seal(struct facts *f);
bool facts_is_hash(const char *text);                   // as facts_seal() makes them
void text_hash(const char *text, char hash[static 65]); // SHA-256, lower-case hex
// {"hash":"…","facts":{"name":"value",…}}
void facts_write_json(const struct facts *f, struct jsonw *w, const char *key);
// What facts_write_json wrote. Names stay in `object`, which must outlive them. ERR_INVALID.
int facts_from_json(struct facts *f, const struct json *object, struct err *err);
// The kernel's base page in bytes; 0: not among the facts.
uint64_t fingerprint_base_page(const struct fingerprint *f);
void fingerprint_write_json(const struct fingerprint *f, struct jsonw *w, const char *key);

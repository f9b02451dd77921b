// SPDX-License-Identifier: Apache-2.0
// Reading JSON: cJSON behind a strict door. A text is refused that is larger in memory or deeper
// than its limits, has a duplicate member, a NUL, invalid UTF-8, or anything after the value. The
// only module that includes cJSON.h.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct json; // a value; owned by the root that json_parse gave

enum {
    JSON_DEPTH_MAX = 16,     // deepest thing we read is a run with matrices: 6
    JSON_MEMBERS_MAX = 4096, // of one object, which is searched by walking; ours have 60
    // What cJSON will take: a value 80 bytes, a name or text 32 more, where the text that is read
    // may have two. The largest run to import has 98,304 cells of 18 members (2,128 bytes each) and
    // 1024 ranks of 100: 221 MB, and its text of 32 MiB.
    JSON_VALUE_BYTES = 80,
    JSON_TEXT_BYTES = 32,
    JSON_MEMORY_MAX = 256 << 20,
};

// ERR_BAD_REQUEST says what is wrong and at which byte; ERR_TOO_LARGE, too many members or more
// than JSON_MEMORY_MAX; ERR_NO_MEMORY. The caller frees with json_free.
struct json *json_parse(const char *text, size_t len, struct err *err);
// The same with another limit of memory, in bytes.
struct json *json_parse_within(const char *text, size_t len, size_t memory_max, struct err *err);
void json_free(struct json *root); // NULL is fine
void json_cleanup(struct json **root);
#define CLEANUP_JSON CLEANUP(json_cleanup)

// The value of a member of the object that `text` is, as text, where parsing all of it would take
// too long. `text` is valid JSON, as the store has it. NULL: it is no object, or has no such
// member.
const char *json_find(const char *text, size_t len, const char *member, size_t *n);

// Borrowed views. NULL value in, NULL or "no" out, so that chains need one check.
const struct json *json_get(const struct json *object, const char *member);
const struct json *json_first(const struct json *array_or_object);
const struct json *json_next(const struct json *value);
const char *json_name(const struct json *value); // member name inside an object
int json_count(const struct json *array_or_object);
bool json_is_object(const struct json *v);
bool json_is_array(const struct json *v);
bool json_is_null(const struct json *v);

const char *json_text(const struct json *v); // NULL if not a string
bool json_number(const struct json *v, double *out);
bool json_i64(const struct json *v, int64_t *out); // exact integers within ±2^53 only
bool json_bool(const struct json *v, bool *out);

// Gives members other names, in all objects from `root` down; not in one that has the other name
// already.
struct json_rename {
    const char *within; // the member that the object is the value of; NULL: any
    const char *was, *is;
};
void json_rename(struct json *root, const struct json_rename *list, size_t n);

// Writes the value as JSON again (numbers exact), with `key` as jsonw does.
struct jsonw;
void json_write(const struct json *v, struct jsonw *w, const char *key);

// Same, by member, with a value for when it is absent or of another type.
const char *json_get_text(const struct json *object, const char *member, const char *otherwise);
double json_get_number(const struct json *object, const char *member, double otherwise);
int64_t json_get_i64(const struct json *object, const char *member, int64_t otherwise);
bool json_get_bool(const struct json *object, const char *member, bool otherwise);

// SPDX-License-Identifier: Apache-2.0
// cJSON accepts more than JSON: duplicate members, raw control characters, NUL inside names, 1000
// levels. What it does not check is checked here, before (one scan of the text) and after (a walk).
#include "base/json.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"

// struct json is never defined: a pointer to it is a pointer to a cJSON node.
static const cJSON *node(const struct json *v)
{
    return (const cJSON *)(const void *)v;
}

static const struct json *view(const cJSON *v)
{
    return (const struct json *)(const void *)v;
}

static size_t digits(const char *text, size_t len, size_t at)
{
    while (at < len && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

// Bytes of the number that begins here, by JSON's grammar; 0: "010", "1.", "-.5" and "1e" are none.
static size_t number_length(const char *text, size_t len)
{
    size_t at = len && *text == '-', from = at;
    at = digits(text, len, at);
    if (at == from || (text[from] == '0' && at > from + 1))
        return 0;
    if (at < len && text[at] == '.') {
        from = ++at;
        at = digits(text, len, at);
        if (at == from)
            return 0;
    }
    if (at < len && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        at += at < len && (text[at] == '+' || text[at] == '-');
        from = at;
        at = digits(text, len, at);
        if (at == from)
            return 0;
    }
    return at;
}

static int json_bad(struct err *err, const char *what, size_t at)
{
    return err_set(err, ERR_BAD_REQUEST, "", "%s at byte %zu", what, at);
}

static bool is_code(const char *text, size_t len)
{
    for (size_t i = 0; i < 4; i++)
        if (i >= len || !isxdigit((unsigned char)text[i]))
            return false;
    return true;
}

// *i is behind a quotation mark, and will be at the next one or at the end.
static int scan_text(const char *text, size_t len, size_t *i, struct err *err)
{
    for (; *i < len && text[*i] != '"'; ++*i) {
        if ((unsigned char)text[*i] < 0x20)
            return json_bad(err, "control character", *i);
        if (text[*i] != '\\')
            continue;
        if (len - *i >= 6 && memcmp(text + *i, "\\u0000", 6) == 0)
            return json_bad(err, "NUL in a string", *i);
        // cJSON takes what is no hexadecimal number for 0, which ends the text.
        if (len - *i >= 2 && text[*i + 1] == 'u' && !is_code(text + *i + 2, len - *i - 2))
            return json_bad(err, "\\u without four hexadecimal digits", *i);
        ++*i;
    }
    return 0;
}

struct scan {
    size_t values, texts;
    int depth;
    struct {
        bool object;
        int commas;
    } open[JSON_DEPTH_MAX + 1]; // by depth
};

static int scan_bracket(struct scan *s, char c, size_t at, struct err *err)
{
    if (c == '}' || c == ']') {
        s->depth -= s->depth > 0; // that there is none to close is for cJSON to say
        return 0;
    }
    if (++s->depth > JSON_DEPTH_MAX)
        return err_set(err, ERR_BAD_REQUEST, "", "nested deeper than %d at byte %zu",
                       JSON_DEPTH_MAX, at);
    s->open[s->depth].object = c == '{';
    s->open[s->depth].commas = 0;
    s->values++;
    return 0;
}

static int scan_comma(struct scan *s, size_t at, struct err *err)
{
    s->values++;
    if (++s->open[s->depth].commas >= JSON_MEMBERS_MAX && s->open[s->depth].object)
        return err_set(err, ERR_TOO_LARGE, "", "an object of more than %d members at byte %zu",
                       JSON_MEMBERS_MAX, at);
    return 0;
}

// As Python and C print what is no number: NaN, -Infinity, nan, -inf. No word of JSON has these
// letters.
static bool not_finite(const char *text, size_t len)
{
    size_t sign = len && *text == '-';
    return len - sign >= 3 &&
           (strncasecmp(text + sign, "nan", 3) == 0 || strncasecmp(text + sign, "inf", 3) == 0);
}

// One character outside of texts and numbers.
static int scan_sign(struct scan *s, unsigned char c, size_t at, struct err *err)
{
    if (c < 0x20 && (!c || !strchr("\t\n\r", c)))
        return json_bad(err, "control character", at);
    if (c >= 0x80)
        return json_bad(err, "not JSON", at);
    if (c == ',')
        return scan_comma(s, at, err);
    return c == '{' || c == '[' || c == '}' || c == ']' ? scan_bracket(s, (char)c, at, err) : 0;
}

// Depth, size, control characters, \u0000, numbers and what is no ASCII outside of texts (a byte
// order mark), in one pass over the text.
static int scan(const char *text, size_t len, size_t memory_max, struct err *err)
{
    struct scan s = {.values = 1};
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c == '-' || isalpha(c)) && not_finite(text + i, len - i))
            return json_bad(err, "NaN or Infinity, which are no numbers of JSON,", i);
        if (c == '-' || (c >= '0' && c <= '9')) {
            size_t n = number_length(text + i, len - i);
            if (!n)
                return json_bad(err, "not a number of JSON", i);
            i += n - 1;
        } else if (c == '"') {
            s.texts++;
            i++;
            if (scan_text(text, len, &i, err) < 0)
                return -1;
        } else if (scan_sign(&s, c, i, err) < 0) {
            return -1;
        }
    }
    // Each container may have as many values as commas and one; an empty one is counted too high.
    size_t bytes = len + s.values * JSON_VALUE_BYTES + s.texts * JSON_TEXT_BYTES;
    return bytes <= memory_max ? 0
                               : err_set(err, ERR_TOO_LARGE, "",
                                         "%zu values would take %zu MiB of memory, more than %zu",
                                         s.values, bytes >> 20, memory_max >> 20);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Sorted, because a text of one object with many members must not cost the square of them.
static int refuse_same_names(const cJSON *object, struct err *err)
{
    size_t n = 0, i = 0;
    for (const cJSON *m = object->child; m; m = m->next)
        n++;
    CLEANUP_MEM const char **names = calloc(n + 1, sizeof *names);
    if (!names)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %zu members", n);
    for (const cJSON *m = object->child; m; m = m->next)
        names[i++] = m->string;
    qsort(names, n, sizeof *names, by_name);
    for (i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return err_set(err, ERR_BAD_REQUEST, names[i], "member \"%.40s\" appears twice",
                           names[i]);
    return 0;
}

static int refuse_duplicates(const cJSON *v, struct err *err)
{
    for (const cJSON *a = v->child; a; a = a->next) {
        if (a->child && refuse_duplicates(a, err) < 0)
            return -1;
        if (cJSON_IsNumber(a) && !isfinite(a->valuedouble))
            return err_set(err, ERR_BAD_REQUEST, a->string, "number out of range");
    }
    return cJSON_IsObject(v) ? refuse_same_names(v, err) : 0;
}

// cJSON says "no" to a text and to a lack of memory alike; the first is the sender's mistake.
static bool no_memory;

static void *json_allocate(size_t n)
{
    void *p = malloc(n);
    no_memory |= !p;
    return p;
}

static cJSON *base_json_parse(const char *text, size_t len, const char **end)
{
    cJSON_Hooks hooks = {json_allocate, free};
    cJSON_InitHooks(&hooks);
    no_memory = false;
    return cJSON_ParseWithLengthOpts(text, len, end, 0);
}

struct json *json_parse_within(const char *text, size_t len, size_t memory_max, struct err *err)
{
    if (!str_utf8_valid(text, len)) {
        err_set(err, ERR_BAD_REQUEST, "", "not valid UTF-8");
        return NULL;
    }
    if (scan(text, len, memory_max, err) < 0)
        return NULL;
    const char *end = text;
    cJSON *root = base_json_parse(text, len, &end);
    size_t at = (size_t)(end - text);
    if (!root && no_memory) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for JSON of %zu bytes", len);
        return NULL;
    }
    if (!root) {
        err_set(err, ERR_BAD_REQUEST, "", "not JSON at byte %zu", at);
        return NULL;
    }
    while (at < len && text[at] && strchr(" \t\r\n", text[at])) // the text need not end in a NUL
        at++;
    if (at < len)
        err_set(err, ERR_BAD_REQUEST, "", "something after the JSON value at byte %zu", at);
    if (at < len || refuse_duplicates(root, err) < 0) {
        cJSON_Delete(root);
        return NULL;
    }
    return (struct json *)(void *)root;
}

struct json *json_parse(const char *text, size_t len, struct err *err)
{
    return json_parse_within(text, len, JSON_MEMORY_MAX, err);
}

void json_free(struct json *root)
{
    cJSON_Delete((cJSON *)(void *)root);
}

void json_cleanup(struct json **root)
{
    json_free(*root);
    *root = NULL;
}

// The names in the list are constant: cJSON leaves them alone.
static void rename_member(cJSON *object, const char *was, const char *is)
{
    cJSON *member = cJSON_GetObjectItemCaseSensitive(object, was);
    if (!member || cJSON_GetObjectItemCaseSensitive(object, is))
        return;
    if (!(member->type & cJSON_StringIsConst))
        cJSON_free(member->string);
    member->string = (char *)(uintptr_t)is;
    member->type |= cJSON_StringIsConst;
}

static void rename_below(cJSON *v, const char *within, const struct json_rename *list, size_t n)
{
    for (size_t i = 0; cJSON_IsObject(v) && i < n; i++)
        if (!list[i].within || (within && strcmp(within, list[i].within) == 0))
            rename_member(v, list[i].was, list[i].is);
    for (cJSON *child = v->child; child; child = child->next)
        rename_below(child, child->string, list, n);
}

void json_rename(struct json *root, const struct json_rename *list, size_t n)
{
    rename_below((cJSON *)(void *)root, NULL, list, n);
}

const struct json *json_get(const struct json *object, const char *member)
{
    return view(cJSON_GetObjectItemCaseSensitive(node(object), member));
}

const struct json *json_first(const struct json *v)
{
    return v ? view(node(v)->child) : NULL;
}

const struct json *json_next(const struct json *v)
{
    return v ? view(node(v)->next) : NULL;
}

const char *json_name(const struct json *v)
{
    return v ? node(v)->string : NULL;
}

int json_count(const struct json *v)
{
    return v ? cJSON_GetArraySize(node(v)) : 0;
}

bool json_is_object(const struct json *v)
{
    return cJSON_IsObject(node(v));
}

bool json_is_array(const struct json *v)
{
    return cJSON_IsArray(node(v));
}

bool json_is_null(const struct json *v)
{
    return cJSON_IsNull(node(v));
}

const char *json_text(const struct json *v)
{
    return cJSON_IsString(node(v)) ? node(v)->valuestring : NULL;
}

bool json_number(const struct json *v, double *out)
{
    if (!cJSON_IsNumber(node(v)))
        return false;
    *out = node(v)->valuedouble;
    return true;
}

bool json_i64(const struct json *v, int64_t *out)
{
    static const double exact = 9007199254740992.0; // 2^53
    double d;
    if (!json_number(v, &d) || d != floor(d) || d > exact || d < -exact)
        return false;
    *out = (int64_t)d;
    return true;
}

bool json_bool(const struct json *v, bool *out)
{
    if (!cJSON_IsBool(node(v)))
        return false;
    *out = cJSON_IsTrue(node(v));
    return true;
}

static void json_write_number(double d, struct jsonw *w, const char *key)
{
    char text[32];
    snprintf(text, sizeof text, d == floor(d) && fabs(d) < 1e15 ? "%.0f" : "%.17g", d);
    // The shortest that reads back, of numbers from DBL_MIN on: one of fewer digits than DBL_DIG
    // reads back with them, too, and has no zeros at its end.
    for (int digits = DBL_DIG; digits < 17 && strchr(text, '.'); digits++) {
        char shorter[32];
        double back;
        snprintf(shorter, sizeof shorter, "%.*g", digits, d);
        if (str_to_double(shorter, &back) && back == d) {
            memcpy(text, shorter, sizeof text);
            break;
        }
    }
    jsonw_raw(w, key, text);
}

void json_write(const struct json *v, struct jsonw *w, const char *key)
{
    bool object = json_is_object(v), flag;
    double d;
    if (object || json_is_array(v)) {
        (object ? jsonw_object : jsonw_array)(w, key);
        for (const struct json *m = json_first(v); m; m = json_next(m))
            json_write(m, w, object ? json_name(m) : NULL);
        jsonw_end(w);
    } else if (cJSON_IsString(node(v))) {
        jsonw_text(w, key, json_text(v));
    } else if (json_number(v, &d)) {
        json_write_number(d, w, key);
    } else if (json_bool(v, &flag)) {
        jsonw_bool(w, key, flag);
    } else {
        jsonw_null(w, key);
    }
}

const char *json_get_text(const struct json *object, const char *member, const char *otherwise)
{
    const char *s = json_text(json_get(object, member));
    return s ? s : otherwise;
}

double json_get_number(const struct json *object, const char *member, double otherwise)
{
    double d = otherwise;
    json_number(json_get(object, member), &d);
    return d;
}

int64_t json_get_i64(const struct json *object, const char *member, int64_t otherwise)
{
    int64_t i = otherwise;
    json_i64(json_get(object, member), &i);
    return i;
}

bool json_get_bool(const struct json *object, const char *member, bool otherwise)
{
    bool b = otherwise;
    json_bool(json_get(object, member), &b);
    return b;
}

// --- One member of a text ------------------------------------------------------------------------

static size_t blank_end(const char *text, size_t len, size_t at)
{
    while (at < len && text[at] && strchr(" \t\r\n", text[at]))
        at++;
    return at;
}

// Behind the string that begins here.
static size_t string_end(const char *text, size_t len, size_t at)
{
    for (at++; at < len && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at + 1;
}

// At the comma or bracket that follows the value that begins here.
static size_t value_end(const char *text, size_t len, size_t at)
{
    int depth = 0;
    while (at < len && (depth || !strchr(",}]", text[at]))) {
        if (text[at] == '"') {
            at = string_end(text, len, at);
            continue;
        }
        depth += text[at] == '{' || text[at] == '[';
        depth -= text[at] == '}' || text[at] == ']';
        at++;
    }
    return at;
}

const char *json_find(const char *text, size_t len, const char *member, size_t *n)
{
    size_t at = blank_end(text, len, 0), named = strlen(member);
    while (at < len && (text[at] == '{' || text[at] == ',')) {
        size_t name = blank_end(text, len, at + 1), end;
        if (name >= len || text[name] != '"')
            return NULL;
        size_t past = string_end(text, len, name);
        size_t value = blank_end(text, len, blank_end(text, len, past) + 1);
        end = value_end(text, len, value);
        if (end >= len)
            return NULL;
        if (past - name == named + 2 && memcmp(text + name + 1, member, named) == 0) {
            *n = end - value;
            return text + value;
        }
        at = end;
    }
    return NULL;
}

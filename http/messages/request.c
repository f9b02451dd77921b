// SPDX-License-Identifier: Apache-2.0
// Reads the parts of a request that handlers read. The target is cut and decoded in place.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "http/messages/request.h"

const char *request_header(const struct request *q, const char *name)
{
    for (int i = 0; i < q->n_headers; i++)
        if (strcasecmp(q->headers[i].name, name) == 0)
            return q->headers[i].value;
    return NULL;
}

void request_header_list(const struct request *q, const char *name, struct buf *out)
{
    bool first = true;
    for (int i = 0; i < q->n_headers; i++) {
        if (strcasecmp(q->headers[i].name, name) != 0)
            continue;
        buf_str(out, first ? "" : ", ");
        buf_str(out, q->headers[i].value);
        first = false;
    }
}

int request_header_count(const struct request *q, const char *name)
{
    int n = 0;
    for (int i = 0; i < q->n_headers; i++)
        n += strcasecmp(q->headers[i].name, name) == 0;
    return n;
}

const char *request_query(const struct request *q, const char *name)
{
    for (int i = 0; i < q->n_query; i++)
        if (strcmp(q->query[i].name, name) == 0)
            return q->query[i].value;
    return NULL;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// Decodes in place. A NUL would cut the text short unseen, so it is refused.
static bool decode(char *s)
{
    char *to = s;
    for (; *s; s++) {
        if (*s != '%') {
            *to++ = *s == '+' ? ' ' : *s;
            continue;
        }
        int high = hex_digit(s[1]);
        int low = high < 0 ? -1 : hex_digit(s[2]);
        if (low < 0 || (high == 0 && low == 0))
            return false;
        *to++ = (char)(high * 16 + low);
        s += 2;
    }
    *to = '\0';
    return true;
}

static int request_add_query(struct request *q, char *name, struct err *err)
{
    if (q->n_query == HTTP_QUERY_MAX)
        return err_set(err, ERR_BAD_REQUEST, "", "more than %d query parameters", HTTP_QUERY_MAX);
    char *value = strchr(name, '=');
    if (value)
        *value++ = '\0';
    if (!decode(name) || (value && !decode(value)) || !str_utf8_valid(name, strlen(name)) ||
        (value && !str_utf8_valid(value, strlen(value))))
        return err_set(err, ERR_BAD_REQUEST, "", "the query is not valid percent-encoded UTF-8");
    if (request_query(q, name))
        return err_set(err, ERR_BAD_REQUEST, name, "is given twice in the query");
    q->query[q->n_query++] = (struct http_pair){name, value ? value : ""};
    return 0;
}

int request_split(struct request *q, struct err *err)
{
    q->path = q->uri;
    char *query = strchr(q->uri, '?');
    if (query)
        *query++ = '\0';
    if (*q->uri != '/')
        return err_set(err, ERR_BAD_REQUEST, "", "the request target must begin with /");
    // Our paths need no escapes at all; those that change what a path means are an attack.
    if (strstr(q->path, "%00") || strcasestr(q->path, "%2f") || strcasestr(q->path, "%5c"))
        return err_set(err, ERR_BAD_REQUEST, "", "the path contains an encoded NUL or slash");
    for (char *next = query; next;) {
        char *name = next;
        next = strchr(name, '&');
        if (next)
            *next++ = '\0';
        if (*name && request_add_query(q, name, err) < 0)
            return -1;
    }
    return 0;
}

// To the next of the `ends` that is not within quotes, as in 'text/csv;profile="a,b"'.
static const char *skip_to(const char *p, const char *ends)
{
    bool quoted = false;
    for (; *p && (quoted || !strchr(ends, *p)); p++) {
        if (quoted && *p == '\\' && p[1])
            p++;
        else if (*p == '"')
            quoted = !quoted;
    }
    return p;
}

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

// 'wait=10', 'Wait = "10"; foo': true, and the seconds, at most HTTP_WAIT_MAX_S.
static bool is_wait(const char *p, int64_t *seconds)
{
    static const char name[] = "wait";
    int64_t got = 0;
    p = skip_blanks(p);
    if (strncasecmp(p, name, sizeof name - 1) != 0)
        return false;
    p = skip_blanks(p + sizeof name - 1);
    if (*p != '=')
        return false;
    p = skip_blanks(p + 1);
    bool quoted = *p == '"';
    p += quoted;
    size_t n = strspn(p, "0123456789");
    for (size_t i = 0; i < n && got < HTTP_WAIT_MAX_S; i++)
        got = got * 10 + (p[i] - '0');
    p += n;
    if (!n || (quoted && *p++ != '"'))
        return false;
    p = skip_blanks(p);
    if (*p && *p != ',' && *p != ';')
        return false;
    *seconds = got > HTTP_WAIT_MAX_S ? HTTP_WAIT_MAX_S : got;
    return true;
}

bool request_preferred_wait(const struct request *q, int64_t *seconds)
{
    if (request_query(q, "wait"))
        return false;
    for (int i = 0; i < q->n_headers; i++) {
        if (strcasecmp(q->headers[i].name, "Prefer") != 0)
            continue;
        for (const char *p = q->headers[i].value; *p; p += *p == ',') {
            if (is_wait(p, seconds))
                return true;
            p = skip_to(p, ",");
        }
    }
    return false;
}

int request_wait_s(const struct request *q, int64_t *seconds, struct err *err)
{
    const char *text = request_query(q, "wait");
    int64_t got = 0;
    if (!text && !request_preferred_wait(q, &got))
        got = 0;
    if (text && (!str_to_i64(text, &got) || got < 0))
        return err_set(err, ERR_INVALID, "wait", "must be seconds from 0 to %d", HTTP_WAIT_MAX_S);
    *seconds = got > HTTP_WAIT_MAX_S ? HTTP_WAIT_MAX_S : got;
    return 0;
}

// Thousandths: 'q=0.5' is 500. -1: it is no weight.
static int weight_read(const char *p)
{
    int weight = 0;
    if ((*p != 'q' && *p != 'Q') || p[1] != '=' || (p[2] != '0' && p[2] != '1'))
        return -1;
    if (p[2] == '1')
        return 1000;
    if (p[3] == '.')
        for (int unit = 100, at = 4; unit && p[at] >= '0' && p[at] <= '9'; at++, unit /= 10)
            weight += (p[at] - '0') * unit;
    return weight;
}

// Of what is behind a coding. Without a weight it is 1000. What cannot be read is 0: plain bytes
// are never wrong.
static int coding_weight(const char *p)
{
    p = skip_blanks(p);
    int weight = *p == ';' ? weight_read(skip_blanks(p + 1)) : 1000;
    return weight < 0 ? 0 : weight;
}

// ---- Accept -------------------------------------------------------------------------------------

// Of what is behind a type, with other parameters before it: ';version=1.0.0;q=0.5'.
static int type_weight(const char *p)
{
    for (p = skip_blanks(p); *p == ';'; p = skip_to(p, ";,")) {
        p = skip_blanks(p + 1);
        if ((*p == 'q' || *p == 'Q') && p[1] == '=')
            return weight_read(p);
    }
    return *p && *p != ',' ? -1 : 1000;
}

// How closely a range of n bytes names the type: 3 "text/csv", 2 "text/" and a star, 1 any, 0 not.
static int type_nearness(const char *range, size_t n, const char *type)
{
    if (n == 3 && memcmp(range, "*/*", n) == 0)
        return 1;
    if (n > 2 && memcmp(range + n - 2, "/*", 2) == 0)
        return strncasecmp(range, type, n - 1) == 0 ? 2 : 0;
    return strlen(type) == n && strncasecmp(range, type, n) == 0 ? 3 : 0;
}

struct accepted {
    int nearness, weight; // of the range that names the type most closely
    bool read;            // some range could be read
};

static void accepted_add(struct accepted *a, const char *accept, const char *type)
{
    for (const char *p = accept; *p; p = skip_to(p, ","), p += *p == ',') {
        p = skip_blanks(p);
        size_t n = strcspn(p, " \t;,");
        int found = memchr(p, '/', n) ? type_weight(p + n) : -1;
        int nearness = found < 0 ? 0 : type_nearness(p, n, type);
        a->read |= found >= 0;
        if (nearness > a->nearness || (nearness == a->nearness && found > a->weight))
            a->weight = nearness ? found : a->weight;
        a->nearness = nearness > a->nearness ? nearness : a->nearness;
    }
}

// Several lines are one list (RFC 9110, 5.3).
static struct accepted accepted_of(const struct request *q, const char *type)
{
    struct accepted a = {0};
    for (int i = 0; i < q->n_headers; i++)
        if (strcasecmp(q->headers[i].name, "Accept") == 0)
            accepted_add(&a, q->headers[i].value, type);
    return a;
}

int request_accepts(const struct request *q, const char *const *types, int n)
{
    int found = -1, most = 0;
    bool read = false;
    for (int i = 0; i < n; i++) {
        struct accepted a = accepted_of(q, types[i]);
        read |= a.read;
        if (a.weight > most) {
            most = a.weight;
            found = i;
        }
    }
    return read ? found : 0;
}

int request_refuse_types(const char *const *types, int n, struct err *err)
{
    char list[200] = "";
    for (int i = 0; i < n; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", types[i]);
    }
    return err_set(err, ERR_NOT_ACCEPTABLE, "Accept", "available are %s", list);
}

int request_accept_one(const struct request *q, const char *const *types, int n, struct err *err)
{
    int found = request_accepts(q, types, n);
    return found < 0 ? request_refuse_types(types, n, err) : found;
}

// ---- Accept-Encoding ----------------------------------------------------------------------------

bool request_prefers_gzip(const struct request *q)
{
    enum { GZIP, PLAIN, OTHERS, CODINGS };
    static const char *const names[CODINGS] = {"gzip", "identity", "*"};
    int weights[CODINGS] = {-1, -1, -1};
    for (int i = 0; i < q->n_headers; i++) {
        if (strcasecmp(q->headers[i].name, "Accept-Encoding") != 0)
            continue;
        for (const char *p = q->headers[i].value; *p; p += *p == ',') {
            p = skip_blanks(p);
            size_t n = strcspn(p, " \t;,");
            for (int c = 0; c < CODINGS; c++)
                if (strlen(names[c]) == n && strncasecmp(p, names[c], n) == 0)
                    weights[c] = coding_weight(p + n);
            p += strcspn(p, ",");
        }
    }
    int gzip = weights[GZIP] >= 0 ? weights[GZIP] : weights[OTHERS];
    return gzip > 0 && gzip >= weights[PLAIN];
}

int request_query_bool(const struct request *q, const char *name, bool *out, struct err *err)
{
    const char *text = request_query(q, name);
    if (!text)
        return 0;
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0 || !*text;
    if (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return err_set(err, ERR_INVALID, name, "must be true or false, got \"%.40s\"", text);
    *out = yes;
    return 0;
}

int request_bool(const struct request *q, const char *name, const struct json *member, bool *out,
                 struct err *err)
{
    bool here = false;
    if (request_query_bool(q, name, out, err) < 0)
        return -1;
    if (!member)
        return 0;
    if (!json_bool(member, &here))
        return err_set(err, ERR_INVALID, name, "must be true or false");
    if (request_query(q, name) && here != *out)
        return err_set(err, ERR_INVALID, name, "is %s in the query, and %s here: give it once",
                       *out ? "true" : "false", here ? "true" : "false");
    *out = here;
    return 0;
}

static int query_time(const struct request *q, const char *name, int64_t *ms, struct err *err)
{
    const char *text = request_query(q, name);
    if (text && !clock_parse(text, ms))
        return err_set(err, ERR_INVALID, name,
                       "must be a time such as 2026-11-21T04:05:06Z, or a day, from 1970 on");
    return 0;
}

int request_query_stretch(const struct request *q, int64_t *since_ms, int64_t *until_ms,
                          struct err *err)
{
    if (query_time(q, "since", since_ms, err) < 0 || query_time(q, "until", until_ms, err) < 0)
        return -1;
    if (!request_query(q, "until") || *since_ms < *until_ms)
        return 0;
    return request_query(q, "since")
               ? err_set(err, ERR_INVALID, "since", "must be before until")
               : err_set(err, ERR_INVALID, "until", "must be after 1970-01-01T00:00:00Z");
}

int request_query_filter(const struct request *q, const char *name, const char **out,
                         struct err *err)
{
    *out = request_query(q, name);
    return !*out || **out
               ? 0
               : err_set(err, ERR_INVALID, name, "must not be empty; leave it out for all");
}

int request_query_int(const struct request *q, const char *name, int64_t least, int64_t most,
                      int64_t *out, struct err *err)
{
    const char *text = request_query(q, name);
    int64_t got;
    if (!text)
        return 0;
    if (!str_to_i64(text, &got) || got < least || got > most)
        return err_set(err, ERR_INVALID, name, "must be a whole number from %lld to %lld",
                       (long long)least, (long long)most);
    *out = got;
    return 0;
}

struct json *request_json(const struct request *q, struct err *err)
{
    if (q->body.len)
        return json_parse(buf_text(&q->body), q->body.len, err);
    err_set(err, ERR_BAD_REQUEST, "", "the body is empty; it must be a JSON object");
    return NULL;
}

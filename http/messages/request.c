// SPDX-License-Identifier: Apache-2.0
// Reads the parts of a request that handlers read. The target is cut and decoded in place.
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/str.h"
#include "http/messages/request.h"

const char *request_header(const struct request *q, const char *name)
{
    for (int i = 0; i < q->n_headers; i++)
        if (strcasecmp(q->headers[i].name, name) == 0)
            return q->headers[i].value;
    return NULL;
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

// Up to the next comma that is not inside a quoted string.
static const char *preference_end(const char *p)
{
    bool quoted = false;
    for (; *p && (quoted || *p != ','); p++) {
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
            p = preference_end(p);
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

// Thousandths of the weight behind a coding: ';q=0.5' is 500, nothing is 1000. What cannot be read
// is 0: plain bytes are never wrong.
static int coding_weight(const char *p)
{
    int weight = 0;
    p = skip_blanks(p);
    if (*p != ';')
        return 1000;
    p = skip_blanks(p + 1);
    if ((*p != 'q' && *p != 'Q') || p[1] != '=' || (p[2] != '0' && p[2] != '1'))
        return 0;
    if (p[2] == '1')
        return 1000;
    if (p[3] == '.')
        for (int unit = 100, at = 4; unit && p[at] >= '0' && p[at] <= '9'; at++, unit /= 10)
            weight += (p[at] - '0') * unit;
    return weight;
}

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

int request_query_time(const struct request *q, const char *name, int64_t *ms, struct err *err)
{
    const char *text = request_query(q, name);
    if (text && !clock_parse(text, ms))
        return err_set(err, ERR_INVALID, name,
                       "must be a time such as 2026-11-21T04:05:06Z, or a day");
    return 0;
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

// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include <strings.h>

#include "api/http.h"
#include "base/clock.h"
#include "base/str.h"

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

// Decodes in place. A NUL would cut the text short without anybody noticing, so it is refused.
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

static int add_query(struct request *q, char *name, struct err *err)
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
        return err_set(err, ERR_BAD_REQUEST, "", "the path hides a NUL or a slash");
    for (char *next = query; next;) {
        char *name = next;
        next = strchr(name, '&');
        if (next)
            *next++ = '\0';
        if (*name && add_query(q, name, err) < 0)
            return -1;
    }
    return 0;
}

// "respond-async, wait=10": the number after "wait=", or NULL.
static const char *preferred_wait(const char *prefer)
{
    const char *at = prefer ? strcasestr(prefer, "wait=") : NULL;
    return at ? at + strlen("wait=") : NULL;
}

int request_wait_s(const struct request *q, int64_t *seconds, struct err *err)
{
    const char *text = request_query(q, "wait");
    const char *preferred = preferred_wait(request_header(q, "Prefer"));
    char digits[8] = "";
    if (!text && !preferred) {
        *seconds = 0;
        return 0;
    }
    if (!text) {
        size_t n = strspn(preferred, "0123456789");
        memcpy(digits, preferred, n < sizeof digits ? n : sizeof digits - 1);
        text = digits;
    }
    int64_t got;
    if (!str_to_i64(text, &got) || got < 0)
        return err_set(err, ERR_INVALID, "wait", "must be seconds from 0 to %d", HTTP_WAIT_MAX_S);
    *seconds = got > HTTP_WAIT_MAX_S ? HTTP_WAIT_MAX_S : got;
    return 0;
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

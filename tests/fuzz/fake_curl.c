// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fake_curl.h"

#include <curl/curl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo

struct handle {
    curl_write_callback take, take_header;
    void *context, *header_context;
    long status;
};

static struct fake_answer answers[FAKE_ANSWERS_MAX];
static int n_answers, n_most, n_requests;

void fake_curl_set(const struct fake_answer *list, int n, int most)
{
    fuzz_hold(n > 0 && n <= FAKE_ANSWERS_MAX);
    memcpy(answers, list, sizeof *list * (size_t)n);
    n_answers = n;
    n_most = most;
    n_requests = 0;
}

int fake_curl_requests(void)
{
    return n_requests;
}

CURL *curl_easy_init(void)
{
    return calloc(1, sizeof(struct handle));
}

void curl_easy_cleanup(CURL *curl)
{
    free(curl);
}

CURLcode curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
    struct handle *h = curl;
    va_list ap;
    va_start(ap, option);
    if (option == CURLOPT_WRITEFUNCTION)
        h->take = va_arg(ap, curl_write_callback);
    else if (option == CURLOPT_HEADERFUNCTION)
        h->take_header = va_arg(ap, curl_write_callback);
    else if (option == CURLOPT_WRITEDATA)
        h->context = va_arg(ap, void *);
    else if (option == CURLOPT_HEADERDATA)
        h->header_context = va_arg(ap, void *);
    va_end(ap);
    return CURLE_OK;
}

CURLcode curl_easy_getinfo(CURL *curl, CURLINFO info, ...)
{
    struct handle *h = curl;
    va_list ap;
    va_start(ap, info);
    if (info == CURLINFO_RESPONSE_CODE)
        *va_arg(ap, long *) = h->status;
    va_end(ap);
    return CURLE_OK;
}

const char *curl_easy_strerror(CURLcode code)
{
    return code == CURLE_WRITE_ERROR ? "the answer was not wanted" : "nobody answers";
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text)
{
    struct curl_slist *one = calloc(1, sizeof *one);
    fuzz_hold(one && (one->data = strdup(text)));
    one->next = list;
    return one;
}

void curl_slist_free_all(struct curl_slist *list)
{
    while (list) {
        struct curl_slist *next = list->next;
        free(list->data);
        free(list);
        list = next;
    }
}

// Each piece in memory of its own, so that reading past it is seen.
static bool hand_over(const struct handle *h, const uint8_t *data, size_t n)
{
    char *piece = malloc(n);
    fuzz_hold(piece != NULL);
    memcpy(piece, data, n);
    size_t taken = h->take(piece, 1, n, h->context);
    free(piece);
    return taken == n;
}

// As libcurl does: a line with its end, without a NUL.
static bool hand_over_header(const struct handle *h, const struct fake_answer *a)
{
    static const char name[] = "Location: ";
    const uint8_t *end = a->size ? memchr(a->body, '\n', a->size) : NULL;
    size_t n = end ? (size_t)(end - a->body) + 1 : 0;
    char *line = malloc(sizeof name - 1 + n);
    fuzz_hold(line != NULL);
    memcpy(line, name, sizeof name - 1);
    if (n)
        memcpy(line + sizeof name - 1, a->body, n);
    bool ok = !n || h->take_header(line, 1, sizeof name - 1 + n, h->header_context) > 0;
    free(line);
    return ok;
}

CURLcode curl_easy_perform(CURL *curl)
{
    struct handle *h = curl;
    const struct fake_answer *a = &answers[n_requests % n_answers];
    if (n_requests++ >= n_most)
        return CURLE_COULDNT_CONNECT;
    h->status = a->status;
    if (h->take_header && !hand_over_header(h, a))
        return CURLE_WRITE_ERROR;
    for (size_t at = 0; at < a->size; at += a->piece) {
        size_t n = a->piece < a->size - at ? a->piece : a->size - at;
        if (!hand_over(h, a->body + at, n))
            return CURLE_WRITE_ERROR;
    }
    return CURLE_OK;
}

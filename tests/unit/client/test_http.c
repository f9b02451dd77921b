// SPDX-License-Identifier: Apache-2.0
// A request that curl has no memory for is not made: not without its token, nor its certificate,
// nor the key that makes it one of its own.
#include "tests/unit/tap.h"

#include <curl/curl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/http.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo

static int texts, until; // the text that curl cannot copy; 0: none
static int sent;
static char headers[200], whole[200]; // of the last request; of one that had all

static bool copied(void)
{
    return ++texts != until;
}

// In libcurl's place. What is no text, it takes as it is.
CURLcode curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
    (void)curl;
    bool text = option >= CURLOPTTYPE_OBJECTPOINT && option < CURLOPTTYPE_FUNCTIONPOINT &&
                option != CURLOPT_WRITEDATA && option != CURLOPT_HEADERDATA &&
                option != CURLOPT_POSTFIELDS && option != CURLOPT_HTTPHEADER &&
                option != CURLOPT_PRIVATE && option != CURLOPT_XFERINFODATA;
    return text && !copied() ? CURLE_OUT_OF_MEMORY : CURLE_OK;
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text)
{
    struct curl_slist *one = copied() ? calloc(1, sizeof *one) : NULL;
    if (!one)
        return NULL;
    one->data = strdup(text);
    one->next = list;
    snprintf(headers + strlen(headers), sizeof headers - strlen(headers), "%s\n", text);
    return one;
}

CURLcode curl_easy_perform(CURL *curl)
{
    (void)curl;
    sent++;
    return CURLE_OK;
}

CURLcode curl_easy_getinfo(CURL *curl, CURLINFO info, ...)
{
    va_list ap;
    (void)curl;
    va_start(ap, info);
    if ((info & CURLINFO_TYPEMASK) == CURLINFO_STRING)
        *va_arg(ap, char **) = NULL;
    else
        *va_arg(ap, long *) = 200;
    va_end(ap);
    return CURLE_OK;
}

static bool stop(void *ctx, const char *event, const char *id, const char *data, size_t len)
{
    (void)ctx, (void)event, (void)id, (void)data, (void)len;
    return false;
}

static const struct cli cli = {
    .url = "https://node:7780", .cacert = "ca", .cert = "cert", .key = "key", .timeout_s = 1};

static int call(struct http_reply *r, struct err *err)
{
    return http_call(&cli, "POST", "/v1/runs", "{}", "Idempotency-Key: one", r, err);
}

static int post(struct http_reply *r, struct err *err)
{
    static char text[] = "{}";
    const struct buf body = {.data = text, .len = 2};
    return http_post(&cli, "/v1/imports", "text/csv", &body, r, err);
}

static int download(struct http_reply *r, struct err *err)
{
    return http_download(&cli, "/v1/backup", -1, r, err);
}

static int events(struct http_reply *r, struct err *err)
{
    (void)r;
    return http_events(&cli, "/v1/runs/1/events", "7", stop, NULL, err);
}

static void each_text(const char *name, int (*request)(struct http_reply *r, struct err *err))
{
    struct http_reply r = {0};
    struct err err = {0};
    int wrong = 0;
    *headers = '\0';
    texts = until = sent = 0;
    request(&r, &err);
    int all = texts;
    memcpy(whole, headers, sizeof whole);
    CHECK(sent == 1 && all >= 9, "%s: sent with %d texts", name, all);
    for (until = 1; until <= all; until++) {
        *headers = '\0';
        texts = sent = 0;
        err = (struct err){0};
        wrong += request(&r, &err) == 0 || err.code != ERR_NO_MEMORY || sent;
    }
    CHECK(wrong == 0, "%s: not sent without one of them", name);
    http_reply_free(&r);
}

int main(void)
{
    setenv("NUMAPROBE_TOKEN", "np_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHI", 1);
    each_text("a run", call);
    CHECK(strstr(whole, "Idempotency-Key: one\n"), "with its key");
    each_text("an import", post);
    each_text("a backup", download);
    each_text("a stream", events);
    CHECK(strstr(whole, "Last-Event-ID: 7\n"), "from its event on");
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// Facts are hashed as lines name=value in their order, so that equal lists have equal hashes on
// every machine.
#include "model/fingerprint.h"

#include <sha256.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

void facts_add(struct facts *f, const char *name, const char *fmt, ...)
{
    if (f->n == FACTS_MAX)
        return;
    struct fact *fact = &f->list[f->n++];
    fact->name = name;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(fact->value, sizeof fact->value, fmt, ap);
    va_end(ap);
}

static void fingerprint_finish(SHA2_CTX *ctx, char hash[static 65])
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256Final(digest, ctx);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
        snprintf(hash + 2 * i, 3, "%02x", digest[i]);
}

bool facts_is_hash(const char *text)
{
    enum { DIGITS = sizeof((struct facts *)0)->hash - 1 };
    return strlen(text) == DIGITS && strspn(text, "0123456789abcdef") == DIGITS;
}

void facts_seal(struct facts *f)
{
    SHA2_CTX ctx;
    SHA256Init(&ctx);
    for (int i = 0; i < f->n; i++) {
        const struct fact *fact = &f->list[i];
        SHA256Update(&ctx, (const uint8_t *)fact->name, strlen(fact->name));
        SHA256Update(&ctx, (const uint8_t *)"=", 1);
        SHA256Update(&ctx, (const uint8_t *)fact->value, strlen(fact->value));
        SHA256Update(&ctx, (const uint8_t *)"\n", 1);
    }
    fingerprint_finish(&ctx, f->hash);
}

void text_hash(const char *text, char hash[static 65])
{
    SHA2_CTX ctx;
    SHA256Init(&ctx);
    SHA256Update(&ctx, (const uint8_t *)text, strlen(text));
    fingerprint_finish(&ctx, hash);
}

void facts_write_json(const struct facts *f, struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    jsonw_text(w, "hash", f->hash);
    jsonw_object(w, "facts");
    for (int i = 0; i < f->n; i++)
        jsonw_text(w, f->list[i].name, f->list[i].value);
    jsonw_end(w);
    jsonw_end(w);
}

uint64_t fingerprint_base_page(const struct fingerprint *f)
{
    uint64_t bytes = 0;
    for (int i = 0; i < f->config.n; i++)
        if (strcmp(f->config.list[i].name, "page_size") == 0 &&
            str_to_bytes(f->config.list[i].value, 1, &bytes))
            return bytes;
    return 0;
}

void fingerprint_write_json(const struct fingerprint *f, struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    facts_write_json(&f->machine_class, w, "hardware");
    facts_write_json(&f->config, w, "config");
    jsonw_end(w);
}

int facts_from_json(struct facts *f, const struct json *object, struct err *err)
{
    const struct json *list = json_get(object, "facts");
    if (!json_is_object(list))
        return err_set(err, ERR_INVALID, "facts", "must be an object of texts");
    f->n = 0;
    snprintf(f->hash, sizeof f->hash, "%s", json_get_text(object, "hash", ""));
    for (const struct json *v = json_first(list); v; v = json_next(v)) {
        if (!json_text(v))
            return err_set(err, ERR_INVALID, json_name(v), "must be a text");
        if (f->n == FACTS_MAX || strlen(json_name(v)) > FACT_NAME_MAX)
            return err_set(err, ERR_INVALID, "facts", "must be at most %d, of names of %d bytes",
                           FACTS_MAX, FACT_NAME_MAX);
        facts_add(f, json_name(v), "%s", json_text(v));
    }
    return 0;
}

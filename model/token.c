// SPDX-License-Identifier: Apache-2.0
// The file of tokens is read and written line by line here; http/access/tokens.c keeps it.
#include "model/token.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "model/fingerprint.h"

static const char *const names[SCOPES] = {
    [SCOPE_NONE] = "none", [SCOPE_READ] = "read", [SCOPE_RUN] = "run", [SCOPE_ADMIN] = "admin"};

const char *scope_name(enum scope s)
{
    return (unsigned)s < SCOPES ? names[s] : "?";
}

bool scope_find(const char *name, enum scope *out)
{
    for (int s = 0; s < SCOPES; s++)
        if (strcmp(names[s], name) == 0) {
            *out = (enum scope)s;
            return true;
        }
    return false;
}

void token_text(const unsigned char random[TOKEN_RANDOM], char out[TOKEN_TEXT_SIZE])
{
    int n = snprintf(out, TOKEN_TEXT_SIZE, "np_");
    for (int i = 0; i < TOKEN_RANDOM; i++)
        n += snprintf(out + n, 3, "%02x", random[i]);
}

void token_hash(const char *text, char out[TOKEN_HASH_SIZE])
{
    text_hash(text, out);
}

bool token_same_hash(const char *a, const char *b)
{
    volatile unsigned char differs = 0;
    for (int i = 0; i < TOKEN_HASH_SIZE - 1; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return !differs;
}

int token_check_name(const char *name, struct err *err)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    if (!n || n > TOKEN_NAME_MAX || name[n])
        return err_set(err, ERR_INVALID, "name", "must be 1 to %d letters, digits, . _ or -",
                       TOKEN_NAME_MAX);
    return 0;
}

int token_read_line(struct token *t, const char *line, struct err *err)
{
    struct token got = {0};
    char scope[8], created[32];
    int end = 0;
    if (sscanf(line, "%63s %7s %64s %31s %n", got.name, scope, got.hash, created, &end) != 4 ||
        line[end] || !scope_find(scope, &got.scope) || got.scope == SCOPE_NONE ||
        strlen(got.hash) != TOKEN_HASH_SIZE - 1 ||
        strspn(got.hash, "0123456789abcdef") != TOKEN_HASH_SIZE - 1 ||
        !clock_parse(created, &got.created_ms) || token_check_name(got.name, err) < 0)
        return err_set(err, ERR_INVALID, "token_file",
                       "must be \"name scope hash created\", as numaprobe token writes it");
    *t = got;
    return 0;
}

void token_write_line(const struct token *t, struct buf *out)
{
    char created[32];
    clock_rfc3339(t->created_ms, created);
    buf_fmt(out, "%s %s %s %s\n", t->name, scope_name(t->scope), t->hash, created);
}

// SPDX-License-Identifier: Apache-2.0
// The file of tokens is read and written line by line here; http/access/tokens.c keeps it.
#include "model/token.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "model/fingerprint.h"
#include "model/nodeset.h"

static const char *const names[SCOPES] = {[SCOPE_NONE] = "none",
                                          [SCOPE_PUSH] = "push",
                                          [SCOPE_READ] = "read",
                                          [SCOPE_RUN] = "run",
                                          [SCOPE_ADMIN] = "admin"};

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

static int check_nodes_text(const char *nodes, struct err *err)
{
    size_t n = strspn(nodes, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "._-[],/");
    if (!n || n > TOKEN_NODES_MAX || nodes[n])
        return err_set(err, ERR_INVALID, "nodes",
                       "must be a set of nodes without blanks, groups and operators, of at most "
                       "%d bytes: n[1-9],m1",
                       TOKEN_NODES_MAX);
    return 0;
}

int token_check_nodes(const char *nodes, struct err *err)
{
    CLEANUP_NODESET struct nodeset set = {0};
    return check_nodes_text(nodes, err) < 0 ? -1 : nodeset_parse(&set, nodes, NULL, err);
}

bool token_names(const struct token *t, const char *node)
{
    CLEANUP_NODESET struct nodeset set = {0};
    return t->scope == SCOPE_PUSH && nodeset_parse(&set, t->nodes, NULL, NULL) == 0 &&
           nodeset_has(&set, node);
}

int token_read_line(struct token *t, const char *line, struct err *err)
{
    struct token got = {0};
    char scope[8], created[32];
    int end = 0;
    if (sscanf(line, "%63s %7s %64s %31s %n", got.name, scope, got.hash, created, &end) != 4 ||
        !scope_find(scope, &got.scope) || got.scope == SCOPE_NONE ||
        (got.scope == SCOPE_PUSH ? check_nodes_text(line + end, err) < 0 : line[end] != '\0') ||
        strlen(got.hash) != TOKEN_HASH_SIZE - 1 ||
        strspn(got.hash, "0123456789abcdef") != TOKEN_HASH_SIZE - 1 ||
        !clock_parse(created, &got.created_ms) || token_check_name(got.name, err) < 0)
        return err_set(
            err, ERR_INVALID, "token_file",
            "must be \"name scope hash created\" and, of push, nodes, as numaprobe token "
            "writes it");
    snprintf(got.nodes, sizeof got.nodes, "%s", line + end);
    *t = got;
    return 0;
}

void token_write_line(const struct token *t, struct buf *out)
{
    char created[32];
    clock_rfc3339(t->created_ms, created);
    buf_fmt(out, "%s %s %s %s%s%s\n", t->name, scope_name(t->scope), t->hash, created,
            *t->nodes ? " " : "", t->nodes);
}

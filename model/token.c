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

static int token_nodes_add(struct nodeset *to, const struct nodeset *more, struct err *err)
{
    for (int i = 0; i < more->n; i++)
        if (nodeset_add(to, more->names[i], err) < 0)
            return -1;
    return 0;
}

// Tokens for the same nodes follow each other where one replaces another: a set of 65,536 names
// takes 15 ms, so it is read once.
static bool is_named_again(const struct token *list, int i)
{
    for (int k = 0; k < i; k++)
        if (list[k].scope == SCOPE_PUSH && strcmp(list[k].nodes, list[i].nodes) == 0)
            return true;
    return false;
}

// A set that is none counts nothing: the source of the nodes names its line.
static int tokens_join(const struct token *list, int n, struct nodeset *out, struct err *err)
{
    for (int i = 0; i < n; i++) {
        CLEANUP_NODESET struct nodeset set = {0};
        if (list[i].scope == SCOPE_PUSH && !is_named_again(list, i) &&
            nodeset_parse(&set, list[i].nodes, NULL, NULL) == 0 &&
            token_nodes_add(out, &set, err) < 0)
            return -1;
    }
    nodeset_sort(out);
    return 0;
}

int token_check_room(const struct token *list, int n, const char *nodes, struct err *err)
{
    CLEANUP_NODESET struct nodeset all = {0}, more = {0};
    struct err why = {0};
    if (nodeset_parse(&more, nodes, NULL, err) < 0)
        return -1;
    bool joined = tokens_join(list, n, &all, &why) == 0;
    int others = all.n;
    if (joined && token_nodes_add(&all, &more, &why) == 0)
        return 0;
    if (why.code == ERR_NO_MEMORY)
        return err_set(err, why.code, why.member, "%s", why.text);
    if (!joined)
        return err_set(err, ERR_CONFLICT, "nodes",
                       "the tokens that there are name more than %d nodes together; revoke some "
                       "first",
                       NODESET_NAMES_MAX);
    return err_set(err, ERR_CONFLICT, "nodes",
                   "has %d nodes, and the other tokens name %d: a collector can have %d "
                   "together. Name fewer, or revoke a token first",
                   more.n, others, NODESET_NAMES_MAX);
}

bool token_names(const struct token *t, const char *node)
{
    return t->scope == SCOPE_PUSH && nodeset_text_has(t->nodes, node);
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

// SPDX-License-Identifier: Apache-2.0
// Who may do what, and the texts that prove it. A token is 256 random bits; what is kept of it is
// its SHA-256. No salt and no slow hash: no one can guess 256 bits.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

// Each includes those before it, but for SCOPE_PUSH.
enum scope {
    SCOPE_NONE,  // is it alive?
    SCOPE_PUSH,  // send runs of some nodes to a collector. No other scope includes it
    SCOPE_READ,  // look at everything that is kept
    SCOPE_RUN,   // measure, import, name runs and baselines
    SCOPE_ADMIN, // delete, take a copy of the database, make and revoke tokens
    SCOPES
};
const char *scope_name(enum scope s);
bool scope_find(const char *name, enum scope *out);

enum {
    TOKEN_NAME_MAX = 63, // as in a route's {name}
    TOKEN_RANDOM = 32,
    TOKEN_TEXT_SIZE = 4 + 2 * TOKEN_RANDOM, // "np_" and hexadecimal digits, with the NUL
    TOKEN_HASH_SIZE = 65,
    TOKEN_NODES_MAX = 255,
};

struct token {
    char name[TOKEN_NAME_MAX + 1];
    enum scope scope;
    int64_t created_ms;
    char hash[TOKEN_HASH_SIZE];      // SHA-256 of the text, hexadecimal
    char nodes[TOKEN_NODES_MAX + 1]; // of SCOPE_PUSH, as a set: whose runs it may send; else ""
};

void token_text(const unsigned char random[TOKEN_RANDOM], char out[TOKEN_TEXT_SIZE]);
void token_hash(const char *text, char out[TOKEN_HASH_SIZE]);
// In a time that does not depend on where they differ.
bool token_same_hash(const char *a, const char *b);
// The name of a token or of a baseline. ERR_INVALID, member "name".
int token_check_name(const char *name, struct err *err);

// A set of nodes without blanks, groups and operators. ERR_INVALID, member "nodes".
int token_check_nodes(const char *nodes, struct err *err);
// With the tokens of scope push of a list such a set has at most NODESET_NAMES_MAX nodes: all that
// a collector can have. ERR_CONFLICT, member "nodes".
int token_check_room(const struct token *list, int n, const char *nodes, struct err *err);
bool token_names(const struct token *t, const char *node); // of SCOPE_PUSH: the node is its

// A line of the token file: "<name> <scope> <hash> <created, RFC 3339>", and of SCOPE_PUSH the
// nodes. ERR_INVALID. The nodes are not expanded here: a file has many lines.
int token_read_line(struct token *t, const char *line, struct err *err);
void token_write_line(const struct token *t, struct buf *out);

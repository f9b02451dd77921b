// SPDX-License-Identifier: Apache-2.0
// The file of tokens: mode 0600, ours, one line a token. It is read again whenever it has changed,
// so that a token that was revoked opens nothing from that moment on.
#pragma once
#include "model/token.h"

enum { TOKENS_MAX = 256 }; // a file of 104 KiB

struct tokens;

// A file that is not there has no tokens. ERR_INVALID (member "token_file"): it is readable or
// writable by others, belongs to another account, is a link, or has a line that is none.
struct tokens *tokens_open(const char *path, struct err *err);
void tokens_free(struct tokens *t); // NULL is fine
// The same errors. To root the file may belong to any account: it may check for the daemon's.
int tokens_check(const char *path, struct err *err);

// The token that was sent as `text`, borrowed until the next call; NULL: there is none.
const struct token *tokens_find(struct tokens *t, const char *text);
int tokens_list(struct tokens *t, const struct token **list, int *n, struct err *err); // borrowed
// *text is what the caller must keep: it is never seen again. On disk when this returns. `nodes`:
// of SCOPE_PUSH, else "".
int tokens_create(struct tokens *t, const char *name, enum scope scope, const char *nodes,
                  struct token *made, char text[TOKEN_TEXT_SIZE], struct err *err);
int tokens_revoke(struct tokens *t, const char *name, struct err *err); // ERR_NOT_FOUND

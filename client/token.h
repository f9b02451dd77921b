// SPDX-License-Identifier: Apache-2.0
// The token that goes with every request.
#pragma once
#include "client/config.h"

// The token to send, "" for none. ERR_USAGE: its file may be read by others, it would travel in
// clear, or no setting names the daemon that gets it.
enum { TOKEN_ROOM = 256 };
int token_find(const struct cli *c, char token[TOKEN_ROOM], struct err *err);

// SPDX-License-Identifier: Apache-2.0
// How a rank lives and dies: with its launcher, before any other process when memory runs out, and
// not after its deadline.
#pragma once
#include <stdint.h>

void life_begin(void); // dies with its parent; first choice of the out-of-memory killer; no SIGPIPE
// After `seconds` writes `last_words` to fd without waiting (fd -1: nothing) and `on_stderr` to
// stderr, and ends the process with status 1. Both texts are borrowed for the process's life. 0
// seconds: no deadline.
void life_deadline(int64_t seconds, int fd, const char *last_words, const char *on_stderr);
void life_said_all(void); // the last words are not needed any more

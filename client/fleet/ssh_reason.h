// SPDX-License-Identifier: Apache-2.0
// What ssh printed when it failed, as one sentence for people. Pure.
#pragma once
#include <stddef.h>

// `said`: what ssh printed on stderr, any bytes; "": nothing. The sentence does not name the node,
// so that equal reasons of many nodes can be printed once. It is printable.
void ssh_reason(const char *said, const char *node, char *out, size_t room);

// SPDX-License-Identifier: Apache-2.0
// The place of fetch/ is taken by a list of answers, so that client/http.c and the requests to many
// nodes run as they are and no socket is needed.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { FAKE_ANSWERS_MAX = 8 };

struct fake_answer {
    long status;
    const uint8_t *body; // borrowed
    size_t size, piece;  // it arrives in pieces of this size
};

// From now on requests are answered with these in turn, and from the first again. After so many
// requests nobody answers any more.
void fake_fetch_set(const struct fake_answer *list, int n, int most);
int fake_fetch_requests(void);

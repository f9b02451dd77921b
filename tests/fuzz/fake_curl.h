// SPDX-License-Identifier: Apache-2.0
// libcurl's place is taken by a list of answers, so that client/http.c runs as it is and no socket
// is needed.
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
void fake_curl_set(const struct fake_answer *list, int n, int most);
int fake_curl_requests(void);

// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the known word that is nearest to what was typed.
#pragma once
#include <stddef.h>

struct suggestion {
    const char *typed;
    char best[64]; // "": none is near
    int weight;
};
#define SUGGESTION_FOR(word) ((struct suggestion){.typed = (word)})

// Compares one known word: a third of its letters may differ, or it continues what was typed.
void suggest_consider(struct suggestion *s, const char *known);
// "; did you mean \"<before><best>\"?", or "" without a near word. Returns out.
const char *suggest_text(const struct suggestion *s, const char *before, char *out, size_t room);
enum { SUGGEST_TEXT_ROOM = 96 };

// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the known word that is nearest to what was typed.
#pragma once
#include <stddef.h>

struct suggestion {
    const char *typed;
    char best[64]; // "": none is near
    int weight;
    int letters; // that were compared
};
#define SUGGESTION_FOR(word) ((struct suggestion){.typed = (word)})

// Compares one known word: a third of its letters may differ, or it continues what was typed. After
// SUGGEST_LETTERS_MAX the rest is not considered: a nearer one may be missed behind the first
// hundreds of names as long as the typed one, or the first ten thousand short ones.
void suggest_consider(struct suggestion *s, const char *known);
// "; did you mean \"<before><best>\"?", or "" without a near word. Returns out.
const char *suggest_text(const struct suggestion *s, const char *before, char *out, size_t room);
enum {
    SUGGEST_TEXT_ROOM = 96,
    SUGGEST_LETTERS_MAX = 500000, // pairs of letters: 2 to 4 ms of a loop
};

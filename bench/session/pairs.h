// SPDX-License-Identifier: Apache-2.0
// Pairs of ranks: which are measured, and what they share. The first of a pair (the ping side)
// reports the time, the second answers.
#pragma once
#include "bench/session/session.h"
#include "model/topology.h"

enum pair_class pair_class_of(const struct cpu_place *a, const struct cpu_place *b);

// ERR_USAGE or ERR_INVALID: there are fewer than two ranks, more than a matrix holds, or not those
// that the list of pairs has.
int pairs_possible(const struct session *s, struct err *err);
// Of all pairs only some are measured (pairs_most); the first of each class are among them.
bool pairs_chosen(const struct session *s);
// How many of `all` pairs fit: one visit of all takes visit_s, and each pair has `visits` at least.
// All, or powers of two, but not fewer than `least`. Pure.
int64_t pairs_that_fit(int64_t all, int64_t least, double visit_s, double visits, double room_s);
// Pairs as "classes" or a list says, in order, of ranks that there are (pairs_possible); *pairs is
// malloc'ed.
int pair_list(const struct session *s, const char *which, int (**pairs)[2], int *n,
              struct err *err);
// States where the two ranks of a pair are.
int pair_note(struct session *s, const int ends[2], struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Texts that occur again and again, as numbers from 0 on. Pure.
#pragma once
#include "base/err.h"

struct interned { // {0} is empty
    int n, room, slots;
    char **list; // owned
    int *slot;   // [slots]: number + 1; 0: free
};

int interned_find(const struct interned *s, const char *text);           // -1: none
int interned_add(struct interned *s, const char *text, struct err *err); // -1: no memory
void interned_fini(struct interned *s);

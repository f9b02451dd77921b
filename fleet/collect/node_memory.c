// SPDX-License-Identifier: Apache-2.0
// Nodes in memory, with the texts that each has.
#include "fleet/collect/parts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

static const size_t polled_texts[] = {
    offsetof(struct polled, base[0]),      offsetof(struct polled, base[1]),
    offsetof(struct polled, class_hint),   offsetof(struct polled, partitions),
    offsetof(struct polled, slurm_reason), offsetof(struct polled, other),
    offsetof(struct polled, behind),       offsetof(struct polled, why),
};

static const char **text_at(struct polled *n, size_t i)
{
    return (const char **)(void *)((char *)n + polled_texts[i]);
}

static void text_free(const char *text)
{
    if (*text)
        free((void *)(uintptr_t)text);
}

void polled_text(const char **at, const char *text)
{
    const char *old = *at, *new = "";
    if (strcmp(old, text) == 0)
        return;
    if (*text && !(new = strdup(text)))
        new = "";
    text_free(old);
    *at = new;
}

void polled_why(struct polled *n, const char *why)
{
    char cut[POLLER_WHY];
    snprintf(cut, sizeof cut, "%s", why);
    polled_text(&n->why, cut);
}

void polled_free(struct polled *n)
{
    for (size_t i = 0; n && i < COUNT_OF(polled_texts); i++)
        text_free(*text_at(n, i));
    if (n)
        free(n->push);
    free(n);
}

struct polled *polled_new(struct poller *p, const char *name, int64_t first_ms)
{
    struct polled *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    for (size_t i = 0; i < COUNT_OF(polled_texts); i++)
        *text_at(n, i) = "";
    n->poller = p;
    n->due_ms = first_ms;
    n->allowance = RUNS_AT_ONCE;
    n->allowance_ms = clock_mono_ms();
    snprintf(n->name, sizeof n->name, "%s", name);
    return n;
}

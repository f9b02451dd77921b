// SPDX-License-Identifier: Apache-2.0
// The table of mixes, and what of it a run requests.
#include "model/mix.h"

#include <string.h>

#include "base/cleanup.h"

// In the order of `mix=all`, which is those that other tools have; the rest must be named.
enum { MIXES_OF_ALL = 5 };
static const struct load_mix load_mixes[SPEC_MIXES_MAX] = {
    {"reads", LOAD_READ, "latency_reads", "bandwidth_reads"},
    {"3:1", LOAD_3R1W, "latency_3r1w", "bandwidth_3r1w"},
    {"2:1", LOAD_2R1W, "latency_2r1w", "bandwidth_2r1w"},
    {"1:1", LOAD_1R1W, "latency_1r1w", "bandwidth_1r1w"},
    {"nt", LOAD_WRITE, "latency_nt", "bandwidth_nt"},
    {"copy", LOAD_COPY, "latency_copy", "bandwidth_copy"},
    {"chase", LOAD_CHASE, "latency_chase", "bandwidth_chase"},
};
// Of a run that names a load only.
static const struct load_mix single_mixes[] = {
    {"chase", LOAD_CHASE, "latency", "bandwidth"},
    {"read", LOAD_READ, "latency", "bandwidth"},
    {"write", LOAD_WRITE, "latency", "bandwidth"},
    {"copy", LOAD_COPY, "latency", "bandwidth"},
};

static const struct load_mix *mix_named(const char *name, size_t len)
{
    for (int i = 0; i < SPEC_MIXES_MAX; i++)
        if (strlen(load_mixes[i].name) == len && strncmp(load_mixes[i].name, name, len) == 0)
            return &load_mixes[i];
    return NULL;
}

static int bad_mix(const char *text, struct err *err)
{
    return err_set(err, ERR_INVALID, "mix",
                   "must be all, or a list of different mixes: reads, 3:1, 2:1, 1:1, nt, copy, "
                   "chase; got \"%.40s\"",
                   text);
}

static bool has_mix(const struct load_mix *const *list, int n, const struct load_mix *m)
{
    for (int i = 0; i < n; i++)
        if (list[i] == m)
            return true;
    return false;
}

int mix_list(const struct spec *s, const struct load_mix *list[SPEC_MIXES_MAX], int *n,
             struct err *err)
{
    *n = 0;
    for (int i = 0; strcmp(s->mix, "all") == 0 && i < MIXES_OF_ALL; i++)
        list[(*n)++] = &load_mixes[i];
    for (size_t i = 0; !*s->mix && i < COUNT_OF(single_mixes); i++)
        if (single_mixes[i].kind == (enum load_kind)s->load)
            list[(*n)++] = &single_mixes[i];
    if (*n || !*s->mix)
        return 0;
    for (const char *at = s->mix;; at++) {
        size_t len = strcspn(at, ",");
        const struct load_mix *m = mix_named(at, len);
        if (!m || has_mix(list, *n, m))
            return bad_mix(s->mix, err);
        list[(*n)++] = m;
        at += len;
        if (!*at)
            return 0;
    }
}

const struct load_mix *mix_of_matrix(const char *matrix)
{
    for (int i = 0; i < SPEC_MIXES_MAX; i++)
        if (strcmp(load_mixes[i].latency, matrix) == 0 ||
            strcmp(load_mixes[i].bandwidth, matrix) == 0)
            return &load_mixes[i];
    return NULL;
}

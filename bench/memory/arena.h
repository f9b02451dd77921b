// SPDX-License-Identifier: Apache-2.0
// One piece of memory of the largest working set, mapped, bound and populated once and used for all
// sizes: faulting pages in is the dearest part of a measurement, and the same pages serve all
// sizes.
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "bench/memory/placement.h"
#include "model/record.h"
#include "model/spec.h"

struct arena {
    char *base; // aligned to `page`; owned
    uint64_t bytes;
    uint64_t page; // size of the pages that it was mapped for
    enum pages pages;
    struct placed placed; // when it was verified last
};

// Bytes that arena_map really takes for a working set of `bytes`: whole pages of their kind.
uint64_t arena_round(uint64_t bytes, enum pages pages);

// How base pages are called here: "4k", "16k", "64k".
enum { PAGE_NAME_ROOM = 8 };
void arena_base_name(char out[static PAGE_NAME_ROOM]);

// Maps and binds; touches nothing. `bound` states whether the kernel took the binding.
int arena_map(struct arena *a, uint64_t bytes, enum pages pages, const struct place *place,
              bool *bound, struct err *err);
// Writes to every page by `threads` threads. ERR_NO_MEMORY_NODE if the kernel has no page to give.
int arena_populate(const struct arena *a, int threads, struct err *err);
void arena_advise_huge(const struct arena *a, bool huge); // what pages are touched from now on
// Huge pages instead of the base pages that were touched, where the kernel finds some: arena_report
// says for how much. Huge pages have to be advised. ERR_UNAVAILABLE: before Linux 6.1.
int arena_collapse(const struct arena *a, struct err *err);
// Fills info's pages_got, huge_share, address and arena_bytes from /proc/self/smaps.
void arena_report(const struct arena *a, struct rank_info *info);
void arena_fini(struct arena *a);

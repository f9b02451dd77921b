// SPDX-License-Identifier: Apache-2.0
// Mapped with room for alignment, bound before the first touch, then populated by several
// threads. Only then is it known which pages the kernel gave.
#include "bench/memory/arena.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/str.h"
#include "model/spec_values.h"

enum { THREADS_MAX = 16 };

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 // Linux 6.1
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 // Linux 5.14
#endif

uint64_t arena_round(uint64_t bytes, enum pages pages)
{
    const struct page_sizes sizes = memory_page_sizes("");
    return spec_page_round(pages, &sizes, bytes);
}

void arena_base_name(char out[static PAGE_NAME_ROOM])
{
    snprintf(out, PAGE_NAME_ROOM, "%uk", (unsigned)(memory_page_sizes("").base >> 10) % 10000);
}

// Maps one unit more and gives back what is outside of the aligned part.
static void *map_aligned(uint64_t bytes, uint64_t unit)
{
    char *whole = mmap(NULL, bytes + unit, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole == MAP_FAILED)
        return MAP_FAILED;
    uint64_t before = (unit - (uint64_t)(uintptr_t)whole % unit) % unit;
    if (before)
        munmap(whole, before);
    munmap(whole + before + bytes, unit - before);
    return whole + before;
}

int arena_map(struct arena *a, uint64_t bytes, enum pages pages, const struct place *place,
              bool *bound, struct err *err)
{
    const struct page_sizes sizes = memory_page_sizes("");
    uint64_t unit = spec_page_bytes(pages, &sizes, bytes);
    uint64_t rounded = spec_page_round(pages, &sizes, bytes);
    bool reserved = spec_pages_reserved(pages);
    void *base = reserved ? place_map_huge(place, rounded, unit) : map_aligned(rounded, unit);
    if (base == MAP_FAILED && reserved)
        return err_set(err, ERR_NO_MEMORY_NODE, "pages",
                       "%" PRIu64 " huge pages of %" PRIu64 " KiB are not available: reserve them "
                       "(/sys/kernel/mm/hugepages/hugepages-%" PRIu64 "kB/nr_hugepages) or use thp",
                       rounded / unit, unit / 1024, unit / 1024);
    if (base == MAP_FAILED)
        return err_sys(err, "cannot map %" PRIu64 " MiB", rounded >> 20);
    if (!reserved)
        madvise(base, rounded, unit > sizes.base ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    *bound = place_bind(place, base, rounded);
    *a = (struct arena){.base = base, .bytes = rounded, .page = unit, .pages = pages};
    return 0;
}

struct slice {
    pthread_t thread;
    char *from;
    uint64_t bytes;
    int failed; // errno
};

// The smallest page there is: a step below the kernel's own costs little.
static void touch(char *from, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += page_sizes_usual.base)
        ((volatile char *)from)[at] = 0;
}

static void *populate_slice(void *context)
{
    struct slice *s = context;
    if (s->bytes && madvise(s->from, s->bytes, MADV_POPULATE_WRITE) < 0)
        s->failed = errno;
    if (s->failed == EINVAL) { // an older kernel
        s->failed = 0;
        touch(s->from, s->bytes);
    }
    return NULL;
}

static int populate_error(const struct arena *a, int sys, struct err *err)
{
    if (sys == ENOMEM || sys == EFAULT || sys == EHWPOISON)
        return err_set(err, ERR_NO_MEMORY_NODE, "size",
                       "the kernel has no pages left for %" PRIu64 " MiB (%s)", a->bytes >> 20,
                       strerror(sys));
    errno = sys;
    return err_sys(err, "cannot populate %" PRIu64 " MiB", a->bytes >> 20);
}

int arena_populate(const struct arena *a, int threads, struct err *err)
{
    struct slice slices[THREADS_MAX] = {0};
    uint64_t unit = a->page, units = (a->bytes + unit - 1) / unit; // no page has two writers
    int n = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    for (int i = 0; i < n; i++) {
        uint64_t from = units * (uint64_t)i / (uint64_t)n * unit;
        uint64_t to = i == n - 1 ? a->bytes : units * (uint64_t)(i + 1) / (uint64_t)n * unit;
        slices[i] = (struct slice){.from = a->base + from, .bytes = to - from};
    }
    int started = 1; // slice 0 is ours
    for (; started < n; started++)
        if (pthread_create(&slices[started].thread, NULL, populate_slice, &slices[started]))
            break;
    populate_slice(&slices[0]);
    for (int i = 1; i < n; i++) {
        if (i < started)
            pthread_join(slices[i].thread, NULL);
        else
            populate_slice(&slices[i]);
    }
    for (int i = 0; i < n; i++)
        if (slices[i].failed)
            return populate_error(a, slices[i].failed, err);
    return 0;
}

void arena_advise_huge(const struct arena *a, bool huge)
{
    madvise(a->base, a->bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

int arena_collapse(const struct arena *a, struct err *err)
{
    if (madvise(a->base, a->bytes, MADV_COLLAPSE) == 0 || errno != EINVAL)
        return 0; // what is lacking is seen in the pages
    return err_set(err, ERR_UNAVAILABLE, "cost",
                   "is collapse, which this kernel does not offer (MADV_COLLAPSE, Linux 6.1)");
}

struct smaps {
    uint64_t rss, huge, kernel_page; // KiB
};

// Sums the mappings inside the arena: the kernel may have split it.
static void read_smaps(const struct arena *a, struct smaps *sum)
{
    CLEANUP_MEM char *line = NULL;
    size_t room = 0;
    bool inside = false;
    FILE *f = fopen("/proc/self/smaps", "re");
    if (!f)
        return;
    while (getline(&line, &room, f) > 0) {
        uint64_t from, to, kib;
        char key[40];
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &from, &to) == 2)
            inside =
                from < (uint64_t)(uintptr_t)a->base + a->bytes && to > (uint64_t)(uintptr_t)a->base;
        else if (inside && sscanf(line, "%39[^:]: %" SCNu64 " kB", key, &kib) == 2) {
            sum->rss += strcmp(key, "Rss") == 0 ? kib : 0;
            sum->rss += strcmp(key, "Private_Hugetlb") == 0 ? kib : 0;
            sum->huge += strcmp(key, "AnonHugePages") == 0 ? kib : 0;
            if (strcmp(key, "KernelPageSize") == 0)
                sum->kernel_page = kib;
        }
    }
    fclose(f);
}

void arena_report(const struct arena *a, struct rank_info *info)
{
    struct smaps sum = {0};
    read_smaps(a, &sum);
    char base[PAGE_NAME_ROOM];
    arena_base_name(base);
    bool reserved = sum.kernel_page * 1024 > memory_page_sizes("").base;
    char size[24];
    str_from_bytes(sum.kernel_page * 1024, size, sizeof size);
    info->huge_share = reserved ? 1 : sum.rss ? (double)sum.huge / (double)sum.rss : 0;
    if (info->huge_share > 1)
        info->huge_share = 1;
    snprintf(info->pages_got, sizeof info->pages_got, "%s",
             reserved                   ? a->pages == PAGES_HUGE ? "huge" : size
             : info->huge_share >= 0.99 ? "thp"
             : info->huge_share > 0.01  ? "mixed"
                                        : base);
    info->address = (uint64_t)(uintptr_t)a->base;
    info->arena_bytes = (int64_t)a->bytes;
}

void arena_fini(struct arena *a)
{
    if (a->base)
        munmap(a->base, a->bytes);
    *a = (struct arena){0};
}

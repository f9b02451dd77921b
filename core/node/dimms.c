// SPDX-License-Identifier: Apache-2.0
// A structure is a header of four bytes, fields as long as it says, and texts that end with two
// NULs. Nothing is read outside of the fields that a structure says it has.
#include "core/node/dimms.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"

// Of a structure "Memory Device".
enum {
    TYPE_MEMORY = 17,
    TYPE_END = 127,
    HEADER_BYTES = 4,
    AT_SIZE = 0x0c,        // MiB; KiB with the highest bit
    AT_KIND = 0x12,        // of memory
    AT_SPEED = 0x15,       // MT/s that the module can
    AT_RANKS = 0x1b,       // lower half
    AT_SIZE_LARGE = 0x1c,  // MiB
    AT_SPEED_NOW = 0x20,   // MT/s that are set up
    AT_SPEED_LARGE = 0x54, // MT/s
    AT_SPEED_NOW_LARGE = 0x58,
    SIZE_UNKNOWN = 0xffff,
    SIZE_IS_LARGE = 0x7fff,
    SIZE_IN_KIB = 0x8000,
    SPEED_IS_LARGE = 0xffff,
};

static const struct {
    unsigned code;
    const char *name;
} kinds[] = {{0x18, "DDR3"},   {0x1a, "DDR4"},   {0x1b, "LPDDR"}, {0x1c, "LPDDR2"},
             {0x1d, "LPDDR3"}, {0x1e, "LPDDR4"}, {0x20, "HBM"},   {0x21, "HBM2"},
             {0x22, "DDR5"},   {0x23, "LPDDR5"}, {0x24, "HBM3"}};

struct fields {
    const unsigned char *at;
    size_t n;
};

// Little-endian; 0 where the structure ends before it.
static uint32_t dimm_field(const struct fields *f, size_t at, size_t bytes)
{
    uint32_t value = 0;
    for (size_t i = 0; at + bytes <= f->n && i < bytes; i++)
        value |= (uint32_t)f->at[at + i] << 8 * i;
    return value;
}

struct module {
    uint32_t mib, speed, speed_now, ranks, kind;
};

// mib 0: the slot is empty, or of unknown content.
static struct module read_module(const struct fields *f)
{
    uint32_t size = dimm_field(f, AT_SIZE, 2), speed = dimm_field(f, AT_SPEED, 2);
    uint32_t now = dimm_field(f, AT_SPEED_NOW, 2);
    struct module m = {.kind = dimm_field(f, AT_KIND, 1), .ranks = dimm_field(f, AT_RANKS, 1) & 15};
    if (size == SIZE_IS_LARGE)
        m.mib = dimm_field(f, AT_SIZE_LARGE, 4) & 0x7fffffff;
    else if (size != SIZE_UNKNOWN)
        m.mib = size & SIZE_IN_KIB ? (size & ~(uint32_t)SIZE_IN_KIB) >> 10 : size;
    m.speed = speed == SPEED_IS_LARGE ? dimm_field(f, AT_SPEED_LARGE, 4) & 0x7fffffff : speed;
    m.speed_now = now == SPEED_IS_LARGE ? dimm_field(f, AT_SPEED_NOW_LARGE, 4) & 0x7fffffff : now;
    return m;
}

struct modules {
    int slots; // empty ones too
    struct module list[DIMMS_MAX];
};

static size_t skip_texts(const unsigned char *table, size_t n, size_t at)
{
    while (at + 1 < n && (table[at] || table[at + 1]))
        at++;
    return at + 2;
}

static void read_modules(struct modules *out, const unsigned char *table, size_t n)
{
    for (size_t at = 0; at + HEADER_BYTES <= n;) {
        struct fields f = {table + at, table[at + 1]};
        if (f.n < HEADER_BYTES || f.n > n - at || *f.at == TYPE_END)
            return;
        if (*f.at == TYPE_MEMORY && out->slots < DIMMS_MAX)
            out->list[out->slots++] = read_module(&f);
        at = skip_texts(table, n, at + f.n);
    }
}

static bool same_kind(const struct module *a, const struct module *b)
{
    return a->mib == b->mib && a->speed == b->speed && a->ranks == b->ranks && a->kind == b->kind;
}

static void write_kind(const struct module *m, int n, struct buf *out)
{
    char size[32];
    str_from_bytes((uint64_t)m->mib << 20, size, sizeof size);
    buf_fmt(out, "%s%dx%s", out->len ? ", " : "", n, size);
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (kinds[i].code == m->kind)
            buf_fmt(out, " %s", kinds[i].name);
    if (m->speed)
        buf_fmt(out, "-%" PRIu32, m->speed);
    if (m->ranks)
        buf_fmt(out, " %" PRIu32 "R", m->ranks);
}

// "16x64G DDR5-4800 2R" for each kind, in the order of the slots.
static void dimms_write_kinds(const struct modules *m, struct buf *out)
{
    bool done[DIMMS_MAX] = {0};
    for (int i = 0; i < m->slots; i++) {
        int n = 0;
        for (int k = i; m->list[i].mib && !done[i] && k < m->slots; k++)
            n += same_kind(&m->list[i], &m->list[k]);
        if (!n)
            continue;
        for (int k = i; k < m->slots; k++)
            done[k] |= same_kind(&m->list[i], &m->list[k]);
        write_kind(&m->list[i], n, out);
    }
}

static void dimms_write_slots(const struct modules *m, struct buf *out)
{
    int used[DIMMS_MAX], n = 0;
    char text[DIMMS_MAX * 4];
    for (int i = 0; i < m->slots; i++)
        if (m->list[i].mib)
            used[n++] = i;
    str_from_ids(used, n, text, sizeof text);
    buf_fmt(out, "; slots %s of %d", text, m->slots);
}

static void write_speeds(const struct modules *m, struct buf *out)
{
    for (int i = 0; i < m->slots; i++) {
        uint32_t speed = m->list[i].mib ? m->list[i].speed_now : 0;
        bool seen = !speed;
        for (int k = 0; k < i; k++)
            seen |= m->list[k].mib && m->list[k].speed_now == speed;
        if (!seen)
            buf_fmt(out, "%s%" PRIu32 " MT/s", out->len ? ", " : "", speed);
    }
}

void dimms_describe(const unsigned char *table, size_t n, char modules[static DIMMS_TEXT_ROOM],
                    char speed[static DIMMS_TEXT_ROOM])
{
    struct modules m = {0};
    CLEANUP_BUF struct buf kinds_text = BUF_INIT, speeds = BUF_INIT;
    read_modules(&m, table, n);
    dimms_write_kinds(&m, &kinds_text);
    if (kinds_text.len)
        dimms_write_slots(&m, &kinds_text);
    write_speeds(&m, &speeds);
    snprintf(modules, DIMMS_TEXT_ROOM, "%s", buf_text(&kinds_text));
    snprintf(speed, DIMMS_TEXT_ROOM, "%s", buf_text(&speeds));
}

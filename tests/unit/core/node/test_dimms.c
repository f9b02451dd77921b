// SPDX-License-Identifier: Apache-2.0
// Memory modules of tables built by hand, and tables that are damaged.
#include "core/node/dimms.h"

#include <stdint.h>
#include <stdlib.h>

#include "tests/unit/tap.h"

static unsigned char table[65536];
static size_t used;

// A structure of this type whose formatted part has n bytes.
static unsigned char *structure(unsigned type, size_t n, const char *texts, size_t texts_n)
{
    unsigned char *at = table + used;
    memset(at, 0, n);
    at[0] = (unsigned char)type;
    at[1] = (unsigned char)n;
    memcpy(at + n, texts, texts_n);
    used += n + texts_n;
    return at;
}

static void put16(unsigned char *at, unsigned value)
{
    at[0] = (unsigned char)value;
    at[1] = (unsigned char)(value >> 8);
}

static void put32(unsigned char *at, uint32_t value)
{
    put16(at, value & 0xffff);
    put16(at + 2, value >> 16);
}

// A module of SMBIOS 3.2; mib 0: an empty slot.
static unsigned char *slot(uint32_t mib, unsigned kind, unsigned speed, unsigned now,
                           unsigned ranks)
{
    unsigned char *at = structure(17, 0x54, "DIMM_A1\0BANK 0\0S3R1AL\0", 23);
    put16(at + 0x0c, mib < 0x7fff ? mib : 0x7fff);
    put32(at + 0x1c, mib < 0x7fff ? 0 : mib);
    at[0x12] = (unsigned char)kind;
    put16(at + 0x15, speed);
    put16(at + 0x20, now);
    at[0x1b] = (unsigned char)ranks;
    return at;
}

static void start(void)
{
    used = 0;
    structure(0, 0x18, "vendor\0001.0\0", 12);
    structure(16, 0x17, "\0\0", 2);
}

static void says(const char *modules, const char *speed, const char *what)
{
    char got[DIMMS_TEXT_ROOM], now[DIMMS_TEXT_ROOM],
        *copy = malloc(used); // so that reading past the end is seen
    if (!copy)
        abort();
    memcpy(copy, table, used);
    dimms_describe((unsigned char *)copy, used, got, now);
    CHECK_STR(got, modules, "%s", what);
    CHECK_STR(now, speed, "%s: what is set up", what);
    free(copy);
}

static void check_modules(void)
{
    start();
    says("", "", "a table without slots");
    for (int i = 0; i < 16; i++)
        slot(65536, 0x22, 4800, 4400, 2);
    structure(127, 4, "\0\0", 2);
    slot(65536, 0x22, 4800, 4400, 2);
    says("16x64G DDR5-4800 2R; slots 0-15 of 16", "4400 MT/s", "nothing counts behind the end");
    start();
    for (int i = 0; i < 8; i++)
        slot(i % 2 ? 0 : 16384, 0x1a, 2666, 2666, 1);
    says("4x16G DDR4-2666 1R; slots 0,2,4,6 of 8", "2666 MT/s", "every other slot");
    start();
    slot(32768, 0x1a, 3200, 2933, 2);
    slot(16384, 0x1a, 3200, 2933, 1);
    slot(32768, 0x1a, 3200, 2666, 2);
    says("2x32G DDR4-3200 2R, 1x16G DDR4-3200 1R; slots 0-2 of 3", "2933 MT/s, 2666 MT/s",
         "two kinds of modules, two speeds");
}

static void check_encodings(void)
{
    start();
    put32(slot(131072, 0x22, 0xffff, 0xffff, 0) + 0x1c, 131072);
    says("1x128G DDR5; slots 0 of 1", "", "a structure that ends before its large speeds");
    start();
    put16(slot(1, 0x99, 0, 0, 0) + 0x0c, 0x8000 | 2048);
    says("1x2M; slots 0 of 1", "", "KiB, and a kind that is new");
    start();
    put16(slot(1, 0x22, 1, 1, 1) + 0x0c, 0xffff);
    says("", "", "a slot of which the size is not known");
    start();
    unsigned char *old = structure(17, 0x15, "\0\0", 2);
    put16(old + 0x0c, 4096);
    old[0x12] = 0x18;
    says("1x4G DDR3; slots 0 of 1", "", "SMBIOS 2.1 has no speeds");
    start();
    unsigned char *large = structure(17, 0x5c, "\0\0", 2);
    put16(large + 0x0c, 0x7fff);
    put32(large + 0x1c, 262144);
    put16(large + 0x15, 0xffff);
    put16(large + 0x20, 0xffff);
    put32(large + 0x54, 70000);
    put32(large + 0x58, 68000);
    says("1x256G-70000; slots 0 of 1", "68000 MT/s", "speeds beyond 65535");
}

static void check_damage(void)
{
    static const unsigned char bad[][8] = {
        {17}, {17, 3, 0, 0, 0, 0}, {17, 255, 0, 0, 0, 0}, {17, 8, 1, 0, 'a', 'b', 'c', 'd'}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memcpy(table, bad[i], sizeof bad[i]);
        used = sizeof bad[i];
        says("", "", "a damaged structure");
    }
    used = 0;
    says("", "", "nothing");
    start();
    slot(65536, 0x22, 4800, 4800, 2);
    size_t whole = used;
    for (used = 0; used < whole; used++) { // a sanitizer sees what is read behind the end
        char got[DIMMS_TEXT_ROOM], now[DIMMS_TEXT_ROOM];
        char *copy = malloc(used + 1);
        if (!copy)
            abort();
        memcpy(copy, table, used);
        dimms_describe((unsigned char *)copy, used, got, now);
        free(copy);
    }
    used = whole - 24; // the last byte of its fields, and its texts
    says("", "", "cut short");
    start();
    for (int i = 0; i < 300; i++)
        slot(1024, 0x22, 4800, 4800, 2);
    says("256x1G DDR5-4800 2R; slots 0-255 of 256", "4800 MT/s", "more slots than are read");
}

int main(void)
{
    check_modules();
    check_encodings();
    check_damage();
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// Strict parsing of small texts: whole text or nothing, ranges checked by the caller's limits.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

bool str_to_i64(const char *s, int64_t *out); // decimal, optional sign, nothing after
bool str_to_u64(const char *s, uint64_t *out);
bool str_to_hex(const char *s, uint64_t *out); // "0x7f00" or "7f00"
// Decimal and finite, '.' whatever the locale.
bool str_to_double(const char *s, double *out);
bool str_starts(const char *s, const char *prefix);
const char *str_plural(int64_t n);          // "" for 1, else "s": "%d node%s"
const char *str_plural_of(const char *ids); // of a list such as "0-2,5": "node%s %s"
bool str_is_address(const char *s); // IPv4 or IPv6, without a port, brackets or a network card
// The next word of "a, b" and its *n bytes; *list moves behind it. Words are without the blanks
// around them, and those without a byte are skipped. NULL: there is no more.
const char *str_list_next(const char **list, size_t *n);
// "https://user:password@host/x": its authority has a user, perhaps with a password.
bool str_url_has_user(const char *url);
// "n1.example", "192.0.2.1" or "[2001:db8::1]", of n bytes.
bool str_is_host(const char *host, size_t n);
// What is wrong with "https://n1:7443/path?query", as the end of a sentence about it. It may have a
// user (str_url_has_user()). NULL: nothing.
const char *str_url_fault(const char *url);
// Bytes of the mark (of byte order) with which some editors begin a file. 0: there is none.
size_t str_mark(const char *s, size_t n);
bool str_utf8_valid(const char *s, size_t n);
// The first control character (utf8_control()) that is no tab; NULL: there is none.
// str_control_name() names it.
const char *str_control(const char *s, size_t n);
// "a control character (U+009B)", the end of an error about one at `at`.
struct str_control_name {
    char text[48];
};
struct str_control_name str_control_name(const char *at);

// "64", "32K", "4M", "16G", "1T", also "32KiB"/"32KB": powers of 1024. A bare number counts in
// `unit` bytes. Writes bytes.
bool str_to_bytes(const char *s, uint64_t unit, uint64_t *bytes);
// 32768 -> "32K", 1536 -> "1536", 4194304 -> "4M": what str_to_bytes(…, 1, …) reads back.
void str_from_bytes(uint64_t bytes, char *out, size_t room);
// "512B", "32K", "16.5G": three figures, for people.
void str_rough_size(double bytes, char *out, size_t room);
// "1MB", "512MB", "1024M", "16384M" or "32KB": the column heads of the result table.
void str_size_head(uint64_t bytes, char *out, size_t room);

// "0,2-5,9": non-negative ids in the order given, no duplicates unless `repeats`. At most `most`.
// On success *ids is malloc'ed (caller frees). Errors name `member`.
int str_to_ids(const char *s, bool repeats, int most, const char *member, int **ids, int *n,
               struct err *err);
// {0,1,2,5} -> "0-2,5" (ids ascending).
void str_from_ids(const int *ids, int n, char *out, size_t room);

// "512" (MiB), "32K,1M,4G", "1-16384" or "1M-4G" (doubling from the first; the last is included).
// *sizes malloc'ed, in bytes, ascending, without duplicates.
int str_to_sizes(const char *s, int most, const char *member, uint64_t **sizes, int *n,
                 struct err *err);

// A list as str_to_sizes takes it, with the unit at each number: "1-1024,32K" -> "1M-1G,32K". What
// is no size, such as "auto", stays as it is.
void str_sizes_text(const char *list, char *out, size_t room);

bool file_is_same(const struct stat *a, const struct stat *b); // by device and inode
// Reads a small file whole (≤ room-1 bytes), drops trailing white space. -1 with errno set.
int file_read_text(const char *path, char *out, size_t room);
// The same of the file whose path `fmt` makes, of at most 1199 bytes.
__attribute__((format(printf, 3, 4))) int file_read_fmt(char *out, size_t room, const char *fmt,
                                                        ...);

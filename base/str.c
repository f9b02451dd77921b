// SPDX-License-Identifier: Apache-2.0
// Each parser takes the whole text or nothing, and leaves its output untouched when it fails.
#include "base/str.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/utf8.h"

bool str_to_u64(const char *s, uint64_t *out)
{
    if (!isdigit((unsigned char)*s))
        return false;
    errno = 0;
    char *end;
    unsigned long long v = strtoull(s, &end, 10);
    if (errno || *end)
        return false;
    *out = v;
    return true;
}

bool str_to_i64(const char *s, int64_t *out)
{
    const char *digits = *s == '-' || *s == '+' ? s + 1 : s;
    if (!isdigit((unsigned char)*digits))
        return false;
    errno = 0;
    char *end;
    long long v = strtoll(s, &end, 10);
    if (errno || *end)
        return false;
    *out = v;
    return true;
}

bool str_to_hex(const char *s, uint64_t *out)
{
    const char *digits = s + 2 * str_starts(s, "0x");
    size_t n = strlen(digits);
    if (n == 0 || n > 16 || digits[strspn(digits, "0123456789abcdefABCDEF")])
        return false;
    *out = strtoull(digits, NULL, 16);
    return true;
}

bool str_to_double(const char *s, double *out)
{
    static locale_t c_locale;
    if (!c_locale)
        c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (s[strspn(s, "0123456789.eE+-")]) // strtod also takes hexadecimal, "nan" and "inf"
        return false;
    char *end;
    double v = c_locale ? strtod_l(s, &end, c_locale) : strtod(s, &end);
    if (end == s || *end || !isfinite(v))
        return false;
    *out = v;
    return true;
}

const char *str_plural_of(const char *ids)
{
    return strpbrk(ids, ",-") ? "s" : "";
}

const char *str_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

bool str_is_address(const char *s)
{
    unsigned char binary[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, s, binary) == 1 || inet_pton(AF_INET6, s, binary) == 1;
}

bool str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

const char *str_list_next(const char **list, size_t *n)
{
    const char *word = *list + strspn(*list, " ,");
    size_t all = strcspn(word, ",");
    *list = word + all;
    for (*n = all; *n && word[*n - 1] == ' ';)
        --*n;
    return all ? word : NULL;
}

bool str_url_has_user(const char *url)
{
    const char *slashes = strstr(url, "//"), *host = slashes ? slashes + 2 : url;
    return memchr(host, '@', strcspn(host, "/?#"));
}

bool str_is_host(const char *host, size_t n)
{
    static const char six[] = "0123456789abcdefABCDEF:.", letters[] = "abcdefghijklmnopqrstuvwxyz"
                                                                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                                      "0123456789-._";
    return n > 2 && *host == '[' ? strspn(host + 1, six) == n - 2 && host[n - 1] == ']'
                                 : n && strspn(host, letters) == n;
}

// ":7780"
static bool is_port(const char *port, size_t n)
{
    size_t digits = n ? strspn(port + 1, "0123456789") : 0;
    long number = digits && digits + 1 == n ? strtol(port + 1, NULL, 10) : 0;
    return number >= 1 && number <= UINT16_MAX;
}

const char *str_url_fault(const char *url)
{
    const char *host =
        str_starts(url, "http://") || str_starts(url, "https://") ? strstr(url, "//") + 2 : NULL;
    if (!host)
        return "must begin with http:// or https://";
    for (const char *c = url; *c; c++)
        if (*c <= ' ' || *c > '~')
            return "must have no blanks, and no characters beyond ASCII";
    size_t all = strcspn(host, "/?#");
    for (const char *at; (at = memchr(host, '@', all)); host = at + 1)
        all -= (size_t)(at + 1 - host);
    size_t n = *host == '[' ? strcspn(host, "]/?#") + 1 : strcspn(host, ":/?#");
    if (n > all || !str_is_host(host, n))
        return "must have a host behind ://, a name or an address such as 192.0.2.1 or "
               "[2001:db8::1]";
    return n == all || is_port(host + n, all - n) ? NULL : "must have a port from 1 to 65535";
}

size_t str_mark(const char *s, size_t n)
{
    static const char mark[] = "\xef\xbb\xbf";
    return n >= sizeof mark - 1 && memcmp(s, mark, sizeof mark - 1) == 0 ? sizeof mark - 1 : 0;
}

bool str_utf8_valid(const char *s, size_t n)
{
    for (size_t i = 0, step; i < n; i += step)
        if (!(step = utf8_char(s + i, n - i)))
            return false;
    return true;
}

const char *str_control(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] != '\t' && utf8_control(s + i, n - i))
            return &s[i];
    return NULL;
}

struct str_control_name str_control_name(const char *at)
{
    struct str_control_name name;
    snprintf(name.text, sizeof name.text, "a control character (U+%04X)",
             (unsigned)utf8_code(at, utf8_char(at, UTF8_CHAR_MAX)));
    return name;
}

static const char unit_letters[] = "KMGT";

bool str_to_bytes(const char *s, uint64_t unit, uint64_t *bytes)
{
    size_t digits = strspn(s, "0123456789");
    if (!digits || digits > 19)
        return false;
    char number[24];
    memcpy(number, s, digits);
    number[digits] = '\0';
    uint64_t v;
    if (!str_to_u64(number, &v))
        return false;
    const char *rest = s + digits;
    if (*rest) {
        const char *at = strchr(unit_letters, toupper((unsigned char)*rest));
        if (!at)
            return false;
        unit = (uint64_t)1 << (10 * (at - unit_letters + 1));
        rest++;
        if (strcmp(rest, "") && strcasecmp(rest, "B") && strcasecmp(rest, "iB"))
            return false;
    }
    return !__builtin_mul_overflow(v, unit, bytes);
}

void str_from_bytes(uint64_t bytes, char *out, size_t room)
{
    int i = -1;
    while (bytes && bytes % 1024 == 0 && i < 3) {
        bytes /= 1024;
        i++;
    }
    snprintf(out, room, "%llu%.*s", (unsigned long long)bytes, i >= 0,
             i >= 0 ? unit_letters + i : "");
}

void str_rough_size(double bytes, char *out, size_t room)
{
    static const char units[] = "BKMGTP";
    int unit = 0;
    while (bytes >= 999.5 && units[unit + 1]) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, room, "%.3g%c", bytes, units[unit]);
}

void str_size_head(uint64_t bytes, char *out, size_t room)
{
    unsigned long long mb = bytes >> 20;
    if (bytes < 1024 || bytes % 1024)
        snprintf(out, room, "%lluB", (unsigned long long)bytes);
    else if (bytes % (1 << 20))
        snprintf(out, room, "%lluKB", (unsigned long long)(bytes >> 10));
    else
        snprintf(out, room, mb < 1000 ? "%lluMB" : "%lluM", mb);
}

static bool ids_have(const int *ids, int n, int id)
{
    for (int i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

// One item of the list: "7" or "2-5".
static bool ids_item(const char *item, int *first, int *last)
{
    char left[16];
    const char *dash = strchr(item, '-');
    size_t n = dash ? (size_t)(dash - item) : strlen(item);
    if (n >= sizeof left)
        return false;
    memcpy(left, item, n);
    left[n] = '\0';
    uint64_t a, b;
    if (!str_to_u64(left, &a) || !str_to_u64(dash ? dash + 1 : left, &b) || a > b ||
        b > INT_MAX / 2)
        return false;
    *first = (int)a;
    *last = (int)b;
    return true;
}

int str_to_ids(const char *s, bool repeats, int most, const char *member, int **ids, int *n,
               struct err *err)
{
    CLEANUP_MEM char *copy = strdup(s);
    CLEANUP_MEM int *list = calloc((size_t)most + 1, sizeof *list);
    if (!copy || !list)
        return err_set(err, ERR_NO_MEMORY, member, "no memory for a list");
    int count = 0;
    char *rest = copy;
    for (char *item; (item = strsep(&rest, ","));) {
        int first, last;
        if (!ids_item(item, &first, &last))
            return err_set(err, ERR_INVALID, member,
                           "\"%.40s\" is not a number or a range like 2-5 (list: 0,2-5)", item);
        for (int id = first; id <= last; id++) {
            if (count == most)
                return err_set(err, ERR_INVALID, member, "lists more than %d numbers", most);
            if (!repeats && ids_have(list, count, id))
                return err_set(err, ERR_INVALID, member, "lists %d twice", id);
            list[count++] = id;
        }
    }
    *ids = steal_ptr(&list);
    *n = count;
    return 0;
}

void str_from_ids(const int *ids, int n, char *out, size_t room)
{
    size_t used = 0;
    if (room)
        out[0] = '\0';
    for (int i = 0; i < n && used < room;) {
        int j = i;
        while (j + 1 < n && ids[j + 1] == ids[j] + 1)
            j++;
        const char *comma = i ? "," : "";
        int w = j > i ? snprintf(out + used, room - used, "%s%d-%d", comma, ids[i], ids[j])
                      : snprintf(out + used, room - used, "%s%d", comma, ids[i]);
        used += (size_t)w;
        i = j + 1;
    }
}

static int by_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int sizes_bad(const char *item, const char *member, struct err *err)
{
    return err_set(err, ERR_INVALID, member,
                   "\"%.40s\" is not a size (512 means MiB; 32K, 4M, 16G) or a range (1-16384)",
                   item);
}

// Appends one item of the list to `list`: a size, or a range that doubles up to its end.
static int sizes_item(char *item, int most, const char *member, uint64_t *list, int *n,
                      struct err *err)
{
    char *dash = strchr(item, '-');
    uint64_t first, last;
    if (dash)
        *dash = '\0';
    bool ok =
        str_to_bytes(item, 1 << 20, &first) && str_to_bytes(dash ? dash + 1 : item, 1 << 20, &last);
    if (dash)
        *dash = '-';
    if (!ok)
        return sizes_bad(item, member, err);
    if (!first || first > last)
        return err_set(err, ERR_INVALID, member,
                       "\"%.40s\": a size must be above 0 and a range must rise", item);
    for (uint64_t size = first;; size *= 2) {
        if (size > last || size > UINT64_MAX / 2)
            size = last;
        if (*n == most)
            return err_set(err, ERR_INVALID, member,
                           "must be at most %d size%s, got more with \"%.40s\"", most,
                           str_plural(most), item);
        list[(*n)++] = size;
        if (size == last)
            return 0;
    }
}

int str_to_sizes(const char *s, int most, const char *member, uint64_t **sizes, int *n,
                 struct err *err)
{
    CLEANUP_MEM char *copy = strdup(s);
    CLEANUP_MEM uint64_t *list = calloc((size_t)most + 1, sizeof *list);
    if (!copy || !list)
        return err_set(err, ERR_NO_MEMORY, member, "no memory for a list");
    int count = 0;
    char *rest = copy;
    for (char *item; (item = strsep(&rest, ","));)
        if (sizes_item(item, most, member, list, &count, err) < 0)
            return -1;
    qsort(list, (size_t)count, sizeof *list, by_u64);
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (!kept || list[kept - 1] != list[i])
            list[kept++] = list[i];
    *sizes = steal_ptr(&list);
    *n = kept;
    return 0;
}

void str_sizes_text(const char *list, char *out, size_t room)
{
    size_t used = 0;
    *out = '\0';
    while (*list && used + 1 < room) {
        char item[40], text[40];
        uint64_t bytes;
        size_t n = strcspn(list, ",-");
        snprintf(item, sizeof item, "%.*s", (int)n, list);
        snprintf(text, sizeof text, "%s", item);
        if (n < sizeof item && str_to_bytes(item, 1 << 20, &bytes))
            str_from_bytes(bytes, text, sizeof text);
        list += n;
        snprintf(out + used, room - used, "%s%.1s", text, list);
        used = strlen(out);
        list += *list != '\0';
    }
}

bool file_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int file_read_text(const char *path, char *out, size_t room)
{
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t used = 0;
    for (ssize_t got; used + 1 < room; used += (size_t)got) {
        got = read(fd, out + used, room - 1 - used);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
    }
    while (used && isspace((unsigned char)out[used - 1]))
        used--;
    out[used] = '\0';
    return 0;
}

int file_read_fmt(char *out, size_t room, const char *fmt, ...)
{
    char path[1200];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(path, sizeof path, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return file_read_text(path, out, room);
}

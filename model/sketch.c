// SPDX-License-Identifier: Apache-2.0
// The packed form is a string of bits: the number of bins, the distance of the edges, then the
// counts by halves. The number of all samples is known. So is, after each count of the lower half
// of some bins, that of the upper half; and a half without samples costs nothing. A count of 0 to m
// takes about log2(m + 1) bits. Simulated latencies, with one level, two or a tail, take within 5 %
// of their entropy this way, and no code table is stored.
#include "model/sketch.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum {
    BINS_BITS = 3,  // log2 of the number of bins
    SHIFT_BITS = 6, // the distance of the edges is a number of 8 bits, shifted
    SPAN_BITS = 8,
    ROOM_LEAST = 11, // bytes
    ROOM_MORE = 4,   // for twice as many samples as ROOM_SAMPLES
    ROOM_SAMPLES = 128,
};
static const double MILLI = 1000, VALUE_MOST = 1e12, SAMPLES_MOST = 1e9;

struct bits {
    unsigned char *bytes;
    int n, room; // bits; beyond the room nothing is written, and zeros are read
};

static void bits_put(struct bits *b, uint64_t value, int count)
{
    for (int i = count - 1; i >= 0; i--, b->n++)
        if (b->n < b->room && (value >> i & 1))
            b->bytes[b->n / 8] |= (unsigned char)(0x80 >> b->n % 8);
}

static uint64_t bits_get(struct bits *b, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++, b->n++)
        value = value << 1 | (b->n < b->room && (b->bytes[b->n / 8] & 0x80 >> b->n % 8));
    return value;
}

static int sketch_log2(uint64_t v)
{
    int n = 0;
    while (v >>= 1)
        n++;
    return n;
}

// A number from 0 to most. The lower ones take a bit less where most + 1 is no power of two.
static void put_part(struct bits *b, int64_t value, int64_t most)
{
    uint64_t v = (uint64_t)value, n = (uint64_t)most + 1;
    int whole = sketch_log2(n);
    uint64_t shorter = (2ULL << whole) - n;
    if (v < shorter)
        bits_put(b, v, whole);
    else
        bits_put(b, v + shorter, whole + 1);
}

static int64_t get_part(struct bits *b, int64_t most)
{
    uint64_t n = (uint64_t)most + 1;
    int whole = sketch_log2(n);
    uint64_t shorter = (2ULL << whole) - n, v = bits_get(b, whole);
    return (int64_t)(v < shorter ? v : (v << 1 | bits_get(b, 1)) - shorter);
}

static int64_t counts_sum(const int64_t *counts, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += counts[i];
    return sum;
}

static void put_counts(struct bits *b, const int64_t *counts, int n, int64_t all)
{
    if (n == 1 || all == 0)
        return;
    int64_t lower = counts_sum(counts, n / 2);
    put_part(b, lower, all);
    put_counts(b, counts, n / 2, lower);
    put_counts(b, counts + n / 2, n / 2, all - lower);
}

static void get_counts(struct bits *b, int64_t *counts, int n, int64_t all)
{
    if (n == 1 || all == 0) {
        memset(counts, 0, (size_t)n * sizeof *counts);
        counts[0] = all;
        return;
    }
    int64_t lower = get_part(b, all);
    get_counts(b, counts, n / 2, lower);
    get_counts(b, counts + n / 2, n / 2, all - lower);
}

// The distance of the edges in thousandths, rounded up to SPAN_BITS bits.
static int64_t span_round(int64_t milli, int *shift)
{
    *shift = 0;
    while ((milli + (1LL << *shift) - 1) >> *shift >= 1 << SPAN_BITS)
        ++*shift;
    return (milli + (1LL << *shift) - 1) >> *shift;
}

static double rounded_up(double low, double high)
{
    int shift;
    int64_t span = span_round(llround((high - low) * MILLI), &shift);
    return (double)(llround(low * MILLI) + (span << shift)) / MILLI;
}

static int sketch_room(int64_t n)
{
    int more = sketch_log2((uint64_t)(n + ROOM_SAMPLES - 1) / ROOM_SAMPLES);
    int room = ROOM_LEAST + ROOM_MORE * more;
    return room < SKETCH_BYTES_MAX ? room : SKETCH_BYTES_MAX;
}

static bool pack(struct sketch *s, const struct histogram *h)
{
    int shift;
    int64_t span = span_round(llround((h->high - h->low) * MILLI), &shift);
    *s = (struct sketch){0};
    struct bits b = {.bytes = s->bytes, .room = 8 * sketch_room(h->n)};
    bits_put(&b, (uint64_t)sketch_log2((uint64_t)h->n_bins), BINS_BITS);
    bits_put(&b, (uint64_t)shift, SHIFT_BITS);
    bits_put(&b, (uint64_t)span, SPAN_BITS);
    put_counts(&b, h->counts, h->n_bins, h->n);
    s->size = (unsigned char)((b.n + 7) / 8);
    return b.n <= b.room;
}

// Neighbours are joined until there is room. One bin always has.
static void pack_what_fits(struct sketch *s, struct histogram *h)
{
    while (!pack(s, h)) {
        h->n_bins /= 2;
        for (int i = 0; i < h->n_bins; i++)
            h->counts[i] = h->counts[2 * i] + h->counts[2 * i + 1];
    }
}

void sketch_of(struct sketch *s, const double *values, int n)
{
    struct histogram h = {.low = INFINITY, .high = -INFINITY, .n = n, .n_bins = 1};
    *s = (struct sketch){0};
    for (int i = 0; i < n; i++) {
        h.low = fmin(h.low, values[i]);
        h.high = fmax(h.high, values[i]);
    }
    if (n < 2 || !(h.low * MILLI >= 0.5) || !(h.high <= VALUE_MOST))
        return;
    h.low = (double)llround(h.low * MILLI) / MILLI;
    h.high = rounded_up(h.low, fmax(h.high, h.low));
    h.n_bins = h.high > h.low ? SKETCH_BINS_MAX : 1;
    double by_ratio = h.n_bins > 1 ? h.n_bins / log(h.high / h.low) : 0;
    for (int i = 0; i < n; i++) {
        int bin = (int)(by_ratio * log(fmax(values[i], h.low) / h.low));
        h.counts[bin < h.n_bins ? bin : h.n_bins - 1]++;
    }
    pack_what_fits(s, &h);
}

bool sketch_read(struct histogram *h, const struct sketch *s, double n, double low)
{
    if (!s->size || s->size > SKETCH_BYTES_MAX || !(n >= 2) || !(n <= SAMPLES_MOST) ||
        !(low * MILLI >= 0.5) || !(low <= VALUE_MOST))
        return false;
    unsigned char bytes[SKETCH_BYTES_MAX];
    memcpy(bytes, s->bytes, sizeof bytes);
    struct bits b = {.bytes = bytes, .room = 8 * s->size};
    struct histogram got = {.n = (int64_t)n, .n_bins = 1 << bits_get(&b, BINS_BITS)};
    int shift = (int)bits_get(&b, SHIFT_BITS);
    double span = ldexp((double)bits_get(&b, SPAN_BITS), shift);
    got.low = (double)llround(low * MILLI) / MILLI;
    got.high = (double)(llround(low * MILLI) + (span < 4e15 ? (int64_t)span : 0)) / MILLI;
    if (got.n_bins > SKETCH_BINS_MAX || !(span <= 2 * VALUE_MOST * MILLI) ||
        (got.high > got.low) != (span > 0) || (got.n_bins > 1 && !(span > 0)))
        return false;
    get_counts(&b, got.counts, got.n_bins, got.n);
    if ((b.n + 7) / 8 != s->size)
        return false;
    *h = got;
    return true;
}

// --- Text --------------------------------------------------------------------------------------

void sketch_write_text(const struct histogram *h, struct buf *out)
{
    int empty = 0;
    buf_fmt(out, "%.3f", h->high);
    for (int i = 0; i < h->n_bins; i++) {
        empty += h->counts[i] == 0;
        if (h->counts[i] == 0 && i + 1 < h->n_bins)
            continue;
        if (empty)
            buf_fmt(out, " -%d", empty);
        if (h->counts[i])
            buf_fmt(out, " %" PRId64, h->counts[i]);
        empty = 0;
    }
}

#define BAD_TEXT(...) err_set(err, ERR_INVALID, "distribution", __VA_ARGS__)

// The next word, without blanks. False: it is too long, or there is none.
static bool sketch_word(const char **at, char *out, size_t room)
{
    size_t n = strcspn(*at, " ");
    if (!n || n >= room)
        return false;
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n;
    *at += **at == ' ';
    return true;
}

static int add_count(struct histogram *h, const char *word, struct err *err)
{
    int64_t v;
    if (!str_to_i64(word, &v) || v == 0 || v < -SKETCH_BINS_MAX || v > (int64_t)SAMPLES_MOST)
        return BAD_TEXT("\"%.20s\" is neither a count nor a number of empty bins", word);
    int bins = v < 0 ? (int)-v : 1;
    if (h->n_bins + bins > SKETCH_BINS_MAX)
        return BAD_TEXT("has more than %d bins", SKETCH_BINS_MAX);
    if (v > 0)
        h->counts[h->n_bins] = v;
    h->n_bins += bins;
    return 0;
}

static int check_histogram(const struct histogram *h, double n, struct err *err)
{
    if (h->n_bins < 1 || (h->n_bins & (h->n_bins - 1)))
        return BAD_TEXT("has %d bins; 1, 2, 4, 8, 16, 32 or 64 are possible", h->n_bins);
    if ((h->n_bins > 1 && !(h->high > h->low)) || h->high < h->low)
        return BAD_TEXT("its highest edge is not above min");
    int64_t sum = counts_sum(h->counts, h->n_bins);
    if ((double)sum != n)
        return BAD_TEXT("its counts add up to %" PRId64 ", n is %.0f", sum, n);
    return 0;
}

int sketch_from_text(struct sketch *s, const char *text, double n, double low, struct err *err)
{
    struct histogram h = {0};
    char word[32];
    if (!(n >= 2) || !(n <= SAMPLES_MOST) || !(low * MILLI >= 0.5) || !(low <= VALUE_MOST))
        return BAD_TEXT("needs n of at least 2 and min of at least 0.001");
    h.n = (int64_t)n;
    h.low = (double)llround(low * MILLI) / MILLI;
    if (!sketch_word(&text, word, sizeof word) || !str_to_double(word, &h.high) ||
        !(h.high <= 2 * VALUE_MOST))
        return BAD_TEXT("does not begin with the highest edge");
    while (*text)
        if (!sketch_word(&text, word, sizeof word))
            return BAD_TEXT("has an empty or endless word");
        else if (add_count(&h, word, err) < 0)
            return -1;
    if (check_histogram(&h, n, err) < 0)
        return -1;
    h.high = rounded_up(h.low, h.high);
    pack_what_fits(s, &h);
    return 0;
}

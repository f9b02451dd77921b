// SPDX-License-Identifier: Apache-2.0
// The part of model/matrix.h that is about axes: their values, their labels and pairs of ranks.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/csv.h"
#include "model/matrix.h"
#include "model/target.h"

enum { PAIR_BASE = 65536, FAR_BITS = 31 };
static const int64_t FAR_PAIR = (int64_t)1 << 50; // the second is interleaved memory

const char *const operation_names[AXIS_OPERATIONS] = {
    [OPERATION_FETCH_ADD] = "fetch_add", [OPERATION_CAS] = "cas",
    [OPERATION_EXCHANGE] = "exchange",   [OPERATION_TAS] = "tas",
    [OPERATION_TICKET] = "ticket",       [OPERATION_MCS] = "mcs",
};

bool operation_is_lock(enum operation operation)
{
    return operation >= OPERATION_TAS;
}

int64_t axis_pair(int first, int second)
{
    if (target_is_interleaved(second))
        return FAR_PAIR | (int64_t)first << FAR_BITS | second;
    return (int64_t)first * PAIR_BASE + second;
}

void axis_unpair(int64_t value, int *first, int *second)
{
    bool far = value >= FAR_PAIR;
    int64_t base = far ? (int64_t)1 << FAR_BITS : PAIR_BASE;
    value -= far ? FAR_PAIR : 0;
    *first = (int)(value / base);
    *second = (int)(value % base);
}

static bool model_axis_is(const struct axis *a, const char *name)
{
    return strcmp(a->name, name) == 0;
}

bool axis_is_named(const struct axis *a)
{
    return model_axis_is(a, "pair") || model_axis_is(a, "access") || model_axis_is(a, "path") ||
           model_axis_is(a, "operation") || model_axis_is(a, "aspect") ||
           (model_axis_is(a, "target") && a->n &&
            (a->values[0] < 0 || target_is_interleaved(a->values[a->n - 1])));
}

void axis_csv(const struct axis *a, int i, struct buf *out)
{
    char label[AXIS_LABEL_ROOM];
    axis_label(a, i, label, sizeof label);
    buf_char(out, ',');
    csv_cell(out, label);
}

void axis_label(const struct axis *a, int i, char *out, size_t room)
{
    static const char *const access_names[AXIS_ACCESSES] = {"own", "shared", "crossed"};
    static const char *const aspect_names[AXIS_ASPECTS] = {"L2", "memory", "bandwidth", "transfer"};
    char target[TARGET_LABEL_ROOM];
    int64_t v = a->values[i];
    int first, second;
    axis_unpair(v, &first, &second);
    target_label(model_axis_is(a, "path") ? second : v, target, sizeof target);
    if (model_axis_is(a, "pair"))
        snprintf(out, room, "%d-%d", first, second);
    else if (model_axis_is(a, "path"))
        snprintf(out, room, "%d->%s", first, target);
    else if (model_axis_is(a, "access") && v >= 0 && v < AXIS_ACCESSES)
        snprintf(out, room, "%s", access_names[v]);
    else if (model_axis_is(a, "aspect") && v >= 0 && v < AXIS_ASPECTS)
        snprintf(out, room, "%s", aspect_names[v]);
    else if (model_axis_is(a, "operation") && v >= 0 && v < AXIS_OPERATIONS)
        snprintf(out, room, "%s", operation_names[v]);
    else if (model_axis_is(a, "target"))
        snprintf(out, room, "%s", target);
    else
        snprintf(out, room, "%" PRId64, v);
}

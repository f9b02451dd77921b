// SPDX-License-Identifier: Apache-2.0
// Numbers of controllers may have gaps: those of a socket whose driver did not load are not there.
#include "core/node/memory_errors.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "core/node/memory_controllers.h"

void memory_errors_read(struct memory_errors *out, const char *root)
{
    CLEANUP_MEM int *numbers = NULL;
    int n = memory_controllers_list(&numbers, root);
    out->n = 0;
    for (int i = 0; i < n && out->n < MEMORY_CONTROLLERS_MAX; i++) {
        char text[32];
        int64_t count;
        if (file_read_fmt(text, sizeof text, "%s/" MEMORY_CONTROLLERS "/mc%d/ce_count", root,
                          numbers[i]) < 0 ||
            !str_to_i64(text, &count) || count < 0)
            continue;
        out->list[out->n].controller = numbers[i];
        out->list[out->n++].corrected = count;
    }
}

int64_t memory_errors_since(const struct memory_errors *now, const struct memory_errors *earlier,
                            int *most)
{
    int64_t sum = 0, largest = 0;
    *most = -1;
    for (int i = 0, k = 0; i < now->n; i++) {
        while (k < earlier->n && earlier->list[k].controller < now->list[i].controller)
            k++;
        if (k == earlier->n || earlier->list[k].controller != now->list[i].controller)
            continue;
        int64_t more = now->list[i].corrected - earlier->list[k].corrected;
        if (more <= 0)
            continue;
        sum += more;
        if (more > largest) {
            largest = more;
            *most = now->list[i].controller;
        }
    }
    return sum;
}

// SPDX-License-Identifier: Apache-2.0
// Numbers of controllers may have gaps: those of a socket whose driver did not load are not there.
#include "core/node/memory_errors.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"

// The number of "mc10"; false: it is no controller.
static bool controller_of(const char *name, int64_t *number)
{
    return str_starts(name, "mc") && str_to_i64(name + 2, number) && *number >= 0 &&
           *number <= INT_MAX;
}

static int is_controller(const struct dirent *e)
{
    int64_t number;
    return controller_of(e->d_name, &number);
}

void memory_errors_read(struct memory_errors *out, const char *root)
{
    struct dirent **found = NULL;
    char folder[600], text[32];
    out->n = 0;
    snprintf(folder, sizeof folder, "%s/sys/devices/system/edac/mc", root);
    int n = scandir(folder, &found, is_controller, versionsort);
    for (int i = 0; i < n; i++) {
        int64_t count, number;
        if (out->n < MEMORY_CONTROLLERS_MAX &&
            file_read_fmt(text, sizeof text, "%s/%.20s/ce_count", folder, found[i]->d_name) == 0 &&
            str_to_i64(text, &count) && count >= 0 && controller_of(found[i]->d_name, &number)) {
            out->list[out->n].controller = (int)number;
            out->list[out->n++].corrected = count;
        }
        free(found[i]);
    }
    free(found);
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

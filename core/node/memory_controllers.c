// SPDX-License-Identifier: Apache-2.0
// The folder has other entries beside them, such as `power`.
#include "core/node/memory_controllers.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"

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

int memory_controllers_list(int **numbers, const char *root)
{
    struct dirent **found = NULL;
    char folder[600];
    int listed = 0;
    snprintf(folder, sizeof folder, "%s/" MEMORY_CONTROLLERS, root);
    int n = scandir(folder, &found, is_controller, versionsort);
    *numbers = n > 0 ? calloc((size_t)n, sizeof **numbers) : NULL;
    for (int i = 0; i < n; i++) {
        int64_t number;
        if (*numbers && controller_of(found[i]->d_name, &number))
            (*numbers)[listed++] = (int)number;
        free(found[i]);
    }
    free(found);
    return listed;
}

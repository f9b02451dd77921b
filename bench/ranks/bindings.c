// SPDX-License-Identifier: Apache-2.0
#include "bench/ranks/bindings.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

static int bad_bind(const char *bind, struct err *err)
{
    return err_set(err, ERR_USAGE, "bind",
                   "--bind: must be CPU:NODE for each rank and no more, such as 0:0,8:1 (-1 for "
                   "anywhere); got \"%.80s\"",
                   bind);
}

// A number from -1 on, with what has to follow it.
static bool bindings_read_number(const char **at, char end, int *out)
{
    char *after;
    if (**at != '-' && !isdigit((unsigned char)**at))
        return false;
    errno = 0;
    long n = strtol(*at, &after, 10);
    if (errno || n < -1 || n > INT_MAX || *after != end)
        return false;
    *out = (int)n;
    *at = after + (end != '\0');
    return true;
}

int bindings_read(const char *list, struct binding *out, int n, struct err *err)
{
    const char *at = list;
    for (int i = 0; i < n; i++)
        if (!bindings_read_number(&at, ':', &out[i].cpu) ||
            !bindings_read_number(&at, i == n - 1 ? '\0' : ',', &out[i].node))
            return bad_bind(list, err);
    return 0;
}

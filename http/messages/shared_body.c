// SPDX-License-Identifier: Apache-2.0
// A body with a count of its readers. All are on one thread.
#include "http/messages/shared_body.h"

#include <stdlib.h>
#include <string.h>

struct shared_body *shared_body_new(const char *data, size_t n)
{
    struct shared_body *s = malloc(sizeof *s + n + 1);
    if (!s)
        return NULL;
    s->refs = 1;
    s->n = n;
    memcpy(s->data, data, n);
    s->data[n] = '\0';
    return s;
}

struct shared_body *shared_body_ref(struct shared_body *s)
{
    s->refs++;
    return s;
}

void shared_body_unref(void *shared)
{
    struct shared_body *s = shared;
    if (s && --s->refs == 0)
        free(s);
}

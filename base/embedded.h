// SPDX-License-Identifier: Apache-2.0
// Files inside the program (made by tools/embed.py). A NUL follows the data.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct embedded {
    const char *name; // NULL ends the table
    const char *data;
    size_t size;
    const char *gzip; // the same, compressed; NULL: it is not stored so
    size_t gzip_size;
};

// Files of a table; of the steps of a schema, the newest version.
static inline int64_t embedded_count(const struct embedded *table)
{
    int64_t n = 0;
    while (table[n].name)
        n++;
    return n;
}

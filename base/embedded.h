// SPDX-License-Identifier: Apache-2.0
// Files inside the program (made by tools/embed.py). A NUL follows the data.
#pragma once
#include <stddef.h>

struct embedded {
    const char *name; // NULL ends the table
    const char *data;
    size_t size;
    const char *gzip; // the same, compressed; NULL: it is not stored so
    size_t gzip_size;
};

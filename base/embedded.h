// SPDX-License-Identifier: Apache-2.0
// Files inside the program (made by tools/embed.py). A NUL follows the data.
#pragma once
#include <stddef.h>

struct embedded {
    const char *name; // NULL ends the table
    const char *data;
    size_t size;
};

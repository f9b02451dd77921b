// SPDX-License-Identifier: Apache-2.0
// Addresses of nodes that DNS does not know: a file in the format of /etc/hosts.
#pragma once
#include <stddef.h>

#include "base/err.h"

struct addresses;

// "" gives an empty list. Lines: an address (IPv4 or IPv6), then names; '#' begins a comment.
// ERR_USAGE names the line. ERR_SYSTEM: the file cannot be read.
struct addresses *addresses_read(const char *path, struct err *err);
void addresses_free(struct addresses *a);
// The pattern with the name or its address for %h; an IPv6 address gets its brackets. ERR_USAGE
// with the member `setting`: the pattern is no URL, or the result does not fit.
int addresses_url(const struct addresses *a, const char *pattern, const char *setting,
                  const char *name, char *out, size_t room, struct err *err);

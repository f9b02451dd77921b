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
// What is wrong with the address of nodes, "https://%h:7443", as the end of a sentence about it.
// %h may be missing. NULL: nothing.
const char *address_fault(const char *pattern);
// The pattern with the name or its address for %h; an IPv6 address gets its brackets. With https it
// is the name, because certificates have names. ERR_USAGE with the member `setting`: the pattern is
// no URL, or the result does not fit.
int addresses_url(const struct addresses *a, const char *pattern, const char *setting,
                  const char *name, char *out, size_t room, struct err *err);
// The address of the host of a URL of https, to connect to; borrowed. NULL: DNS has it. a NULL: an
// empty list.
const char *addresses_of_url(const struct addresses *a, const char *url);

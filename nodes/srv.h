// SPDX-License-Identifier: Apache-2.0
// Nodes from DNS: the records of type SRV of one name (RFC 2782) have a host and a port each.
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

// Whether DNS can have such a name. ERR_INVALID.
int srv_check(const char *name, struct err *err);
// Looks `name` up, such as "_numaprobe._tcp.example", and appends a line (nodes/named.h) per
// record. A host of the same domain is named by what comes before the domain: n1.example is n1.
// Others are named in full. Priorities and weights do not count. May wait for the network for some
// 10 s. ERR_NOT_FOUND: there is no such record. ERR_UNAVAILABLE: no server responds.
int srv_named(const char *name, struct buf *out, struct err *err);
// Of a response of DNS, as bytes. ERR_INVALID: it is none.
int srv_read(const unsigned char *response, size_t n, const char *name, struct buf *out,
             struct err *err);

// SPDX-License-Identifier: Apache-2.0
// TLS of virtual nodes, by GnuTLS with the settings of numaprobed. Each node has a certificate of
// its own for its name and its address; a CA that is made for this process signs them.
#pragma once
#include "base/err.h"
#include "virtual/serve.h"

// Makes the certificates of the nodes of `o`, writes that of the CA to `ca_path` in PEM, and sets
// o->channel, which is valid until the process ends.
int node_tls_begin(struct virtual_options *o, const char *ca_path, struct err *err);

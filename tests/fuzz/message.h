// SPDX-License-Identifier: Apache-2.0
// A request as a text, cut into what the HTTP library would hand on: "METHOD target", headers a
// line each, an empty line, the body.
#pragma once
#include "http/messages/reply.h"

struct message {
    struct request q;
    char *text; // what q points into
};

// False: this is no request at all. The caller calls message_fini either way.
bool message_read(struct message *m, const uint8_t *data, size_t size);
void message_fini(struct message *m);

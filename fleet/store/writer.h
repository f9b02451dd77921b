// SPDX-License-Identifier: Apache-2.0
// What a schema that is not ours says of the process that writes to a store.
#pragma once
#include <stdint.h>

enum { FLEET_WRITER_ROOM = 120 };
// Which of two programs is to be updated, behind a sentence, with a semicolon. "": the schema is
// ours, or there is none yet.
void fleet_writer_text(int64_t version, int64_t known, char out[static FLEET_WRITER_ROOM]);

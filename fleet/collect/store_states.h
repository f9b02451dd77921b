// SPDX-License-Identifier: Apache-2.0
// The states of the store as the collector sees it, by the errors of the process that writes. In
// all but STORE_READY nothing is requested from nodes: they keep their runs meanwhile.
#pragma once
#include "base/err.h"

enum store_state {
    STORE_OPENING,     // the process that writes has been started, or is started again
    STORE_READY,       // what nodes send is stored
    STORE_STANDBY,     // another collector writes; this one takes over when that ends
    STORE_UNREACHABLE, // no connection to PostgreSQL
    STORE_UNWRITABLE,  // it refuses: disk full, read-only, newer schema, no permission
    STORE_DAMAGED,     // it holds what this program never writes
    STORE_STATES
};
extern const char *const store_state_names[STORE_STATES]; // stable, in JSON: "standby"

enum store_state store_state_of(enum err_code failed);

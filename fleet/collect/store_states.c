// SPDX-License-Identifier: Apache-2.0
// Errors that are none of these come from the place too: a path that is no file, no memory.
#include "fleet/collect/store_states.h"

#include <stddef.h>

#include "base/cleanup.h"

const char *const store_state_names[STORE_STATES] = {
    [STORE_OPENING] = "opening",       [STORE_READY] = "ready",
    [STORE_STANDBY] = "standby",       [STORE_UNREACHABLE] = "unreachable",
    [STORE_UNWRITABLE] = "unwritable", [STORE_DAMAGED] = "damaged",
};

enum store_state store_state_of(enum err_code failed)
{
    static const struct {
        enum err_code code;
        enum store_state state;
    } states[] = {{ERR_CONFLICT, STORE_STANDBY},
                  {ERR_UNAVAILABLE, STORE_UNREACHABLE},
                  {ERR_TIMEOUT, STORE_OPENING},
                  {ERR_DAMAGED, STORE_DAMAGED}};
    for (size_t i = 0; i < COUNT_OF(states); i++)
        if (states[i].code == failed)
            return states[i].state;
    return STORE_UNWRITABLE;
}

// SPDX-License-Identifier: Apache-2.0
// A finding that people have not seen as an alarm yet (forming) leaves nothing behind. A closed one
// stays closed until it is confirmed again, so that one that comes and goes at the limit is one
// alarm and not many.
#include "fleet/judge/finding_states.h"

#include <string.h>

// after: seen, confirmed, relapsed, missed, acknowledge, fix, reopen
const struct kept_state_info kept_states[KEPT_STATES] = {
    [KEPT_NONE] = {"none",
                   {KEPT_FORMING, KEPT_OPEN, KEPT_OPEN, KEPT_NONE, KEPT_NONE, KEPT_NONE,
                    KEPT_NONE}},
    [KEPT_FORMING] = {"forming",
                      {KEPT_FORMING, KEPT_OPEN, KEPT_OPEN, KEPT_NONE, KEPT_ACKNOWLEDGED, KEPT_FIXED,
                       KEPT_OPEN}},
    [KEPT_OPEN] = {"open",
                   {KEPT_OPEN, KEPT_OPEN, KEPT_OPEN, KEPT_CLOSED, KEPT_ACKNOWLEDGED, KEPT_FIXED,
                    KEPT_OPEN}},
    [KEPT_ACKNOWLEDGED] = {"acknowledged",
                           {KEPT_ACKNOWLEDGED, KEPT_ACKNOWLEDGED, KEPT_ACKNOWLEDGED, KEPT_CLOSED,
                            KEPT_ACKNOWLEDGED, KEPT_FIXED, KEPT_OPEN}},
    [KEPT_FIXED] = {"fixed",
                    {KEPT_FIXED, KEPT_FIXED, KEPT_OPEN, KEPT_CLOSED, KEPT_ACKNOWLEDGED, KEPT_FIXED,
                     KEPT_OPEN}},
    [KEPT_CLOSED] = {"closed",
                     {KEPT_CLOSED, KEPT_OPEN, KEPT_OPEN, KEPT_CLOSED, KEPT_CLOSED, KEPT_CLOSED,
                      KEPT_CLOSED}},
};

int kept_state_find(const char *name)
{
    for (int i = KEPT_FORMING; i < KEPT_STATES; i++)
        if (strcmp(name, kept_states[i].name) == 0)
            return i;
    return -1;
}

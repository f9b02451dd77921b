// SPDX-License-Identifier: Apache-2.0
// What an administrator wants of admission: for each kind of condition that may block a run,
// whether it refuses a run, is only noted with it, or does not matter, and from which measure on.
// docs/ADMISSION.md describes the kinds and is held to these tables.
#pragma once
#include "base/err.h"
#include "base/hours.h"
#include "base/param.h"
#include "model/blockers.h"

// Those of the configuration first, in the order of policy_table; then those that always refuse.
enum admission_kind {
#define ADMISSION_ID(x, id, ...) ADMIT_##id,
    BLOCKERS_CONFIGURED(ADMISSION_ID, ) BLOCKERS_ALWAYS(ADMISSION_ID, )
#undef ADMISSION_ID
        ADMISSION_KINDS,
#define ADMISSION_ONE(...) +1
    POLICY_KINDS = BLOCKERS_CONFIGURED(ADMISSION_ONE, ) // so many are of the configuration
#undef ADMISSION_ONE
};

enum policy_action { POLICY_IGNORE, POLICY_WARN, POLICY_REFUSE };

struct admission_kind_info {
    const char *name; // stable: blockers carry it, options are admit_<name>
    const char *unit; // of measured and limit; "" for none
    int retry_s;      // when to look again; 0: waiting does not help
};
extern const struct admission_kind_info admission_kinds[ADMISSION_KINDS];

struct policy {
    // As configured.
    char text[POLICY_KINDS][32]; // "refuse", "warn:0.5"
    char hours_text[200];
    char host_lock[108]; // "none": runs of other daemons are not looked for
    int strongest;       // enum policy_action: no kind of the configuration does more
    // By policy_finish.
    struct policy_rule {
        enum policy_action action;
        double limit;
    } rule[ADMISSION_KINDS];
    struct hours hours;
};
extern const struct param_table policy_table; // of struct policy

void policy_defaults(struct policy *p); // finished
// Reads the texts. ERR_USAGE names the option and says what would be right.
int policy_finish(struct policy *p, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// May this plan run on this node now? A list of blockers, each with what was measured and the
// limit.
#pragma once
#include "core/machine.h"
#include "model/plan.h"

struct blocker {
    const char *kind; // "memory", "topology_not_live", "job_running", "cgroup_memory"
    char text[200];
    double measured, limit;
    char unit[8];
};

enum { ADMISSION_BLOCKERS_MAX = 16 };

struct admission {
    int n;
    struct blocker list[ADMISSION_BLOCKERS_MAX];
};

// Share of a node's available memory that a run may take: leaves a reserve for everybody else.
#define ADMISSION_MEMORY_SHARE 0.8

void admission_check(struct admission *a, const struct plan *p, const struct topology *t,
                     const char *root);
int admission_error(const struct admission *a,
                    struct err *err); // 0 if n == 0; else ERR_BUSY/ERR_NO_MEMORY_NODE
// An array of blockers: [{"kind","text","measured","limit","unit"}]; empty when admitted.
void admission_write_json(const struct admission *a, struct jsonw *w, const char *key);

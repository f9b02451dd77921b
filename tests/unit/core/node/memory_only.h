// SPDX-License-Identifier: Apache-2.0
// Admission of a plan by its memory alone: the node's load and whatever else changes is
// test_admission's.
#pragma once
#include "core/admission/checks.h"

__attribute__((unused)) static void memory_beside_a_run(struct admission *a, const struct plan *p,
                                                        const struct topology *t, const char *root)
{
    struct policy policy;
    policy_defaults(&policy);
    const struct admission_input in = {.policy = &policy, .plan = p, .topology = t, .root = root};
    admission_judge(a, &in);
}

// On a node that does nothing else.
__attribute__((unused)) static void memory_only(struct admission *a, const struct plan *p,
                                                const struct topology *t, const char *root)
{
    struct policy policy;
    policy_defaults(&policy);
    const struct readings idle = {.quota_cpus = READING_UNKNOWN,
                                  .sees_others = true,
                                  .cpus = {.n = READING_UNKNOWN},
                                  .mems = {.n = READING_UNKNOWN}};
    const struct admission_input in = {
        .policy = &policy, .plan = p, .topology = t, .root = root, .now = &idle};
    admission_judge(a, &in);
}

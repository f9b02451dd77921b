// SPDX-License-Identifier: Apache-2.0
// Admission of a plan by its memory alone: the node's load and whatever else changes is
// test_admission's.
#pragma once
#include "core/admission/checks.h"

// `now` NULL: beside a run that is being measured.
__attribute__((unused)) static void memory_beside(struct admission *a, const struct plan *p,
                                                  const struct topology *t, const char *root,
                                                  const struct readings *now)
{
    struct policy policy;
    policy_defaults(&policy);
    const struct admission_input in = {
        .policy = &policy, .plan = p, .topology = t, .root = root, .now = now};
    admission_judge(a, &in);
}

// On a node that does nothing else.
__attribute__((unused)) static void memory_only(struct admission *a, const struct plan *p,
                                                const struct topology *t, const char *root)
{
    const struct readings idle = {.quota_cpus = READING_UNKNOWN,
                                  .sees_others = true,
                                  .cpus = {.n = READING_UNKNOWN},
                                  .mems = {.n = READING_UNKNOWN}};
    memory_beside(a, p, t, root, &idle);
}

// SPDX-License-Identifier: Apache-2.0
// What the owner of a runner chooses for it.
#pragma once

struct runner_config {
    const char *run_dir;  // directory for run directories; made 0711; one per daemon
    const char *job_user; // account for ranks when we are root, which only this makes root; NULL:
                          // as in core/launch/account.h
    const struct policy *policy; // of admission; NULL: the defaults. Copied
};

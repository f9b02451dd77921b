// SPDX-License-Identifier: Apache-2.0
// Between the two halves of the supervisor only.
#pragma once

enum { SUPERVISOR_CONTROL_FD = 3, SUPERVISOR_JOB_FD = 4, SUPERVISOR_LOCK_FD = 5 };

// enum supervisor_end, status, killed
#define SUPERVISOR_REPORT "{\"how\":%d,\"status\":%d,\"killed\":%d}\n"

// SPDX-License-Identifier: Apache-2.0
// Answers given since the start, by status.
#pragma once
#include <stdint.h>

enum { STATUS_MAX = 599 };
void counts_add(int status);
int64_t counts_of(int status); // 100…STATUS_MAX

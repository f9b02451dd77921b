// SPDX-License-Identifier: Apache-2.0
// Inside the store only: months (UTC), counted from January 1970. PostgreSQL keeps the runs of a
// month together, and `span` names the months in which a node has runs.
#pragma once
#include <stdint.h>

int month_of(int64_t ms); // UTC, from 1970 on
int64_t month_begin_ms(int month);

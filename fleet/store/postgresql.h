// SPDX-License-Identifier: Apache-2.0
// Inside the store only: the engine on PostgreSQL 15 or later. Rows go in and come out by binary
// COPY, in partitions by month.
#pragma once
#include "fleet/store/engine.h"

extern const struct fleet_engine fleet_postgresql;

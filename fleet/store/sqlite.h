// SPDX-License-Identifier: Apache-2.0
// Inside the store only: the engine on SQLite, which knows SQL's texts of `run`.
#pragma once
#include "fleet/store/engine.h"

extern const struct fleet_engine fleet_sqlite;

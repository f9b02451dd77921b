// SPDX-License-Identifier: Apache-2.0
// The migrations, in order: entry i brings a database from version i to i + 1.
#pragma once
#include "base/embedded.h"

extern const struct embedded schema_sql[];          // of a node
extern const struct embedded schema_fleet_sqlite[]; // of a fleet
extern const struct embedded schema_fleet_pg[];     // the same in PostgreSQL

// SPDX-License-Identifier: Apache-2.0
// The REST interface of the collector as a table; fleet/openapi.yaml describes it.
#pragma once
#include "http/messages/router.h"

extern const struct route fleet_routes[]; // ends with method NULL

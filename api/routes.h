// SPDX-License-Identifier: Apache-2.0
// What this node answers: the daemon and its worker serve the same table.
#pragma once
#include "http/messages/router.h"

extern const struct route routes[]; // ends with method NULL

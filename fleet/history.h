// SPDX-License-Identifier: Apache-2.0
// A metric of one node over the years. In the process that reads.
#pragma once
#include "http/messages/router.h"

handler_fn fleetd_history;

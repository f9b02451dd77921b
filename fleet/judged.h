// SPDX-License-Identifier: Apache-2.0
// What the history says: classes of hardware, and nodes that are slow. Handlers run in the process
// that reads; fleetd_work() says so.
#pragma once
#include "http/messages/router.h"

handler_fn fleetd_classes, fleetd_outliers;
work_fn fleetd_work;

// SPDX-License-Identifier: Apache-2.0
// What the collector knows by itself: its health, its nodes and where each stands.
#pragma once
#include "http/messages/router.h"

handler_fn fleetd_ready, fleetd_openapi, fleetd_status, fleetd_node_list, fleetd_node;

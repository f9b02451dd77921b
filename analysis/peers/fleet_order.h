// SPDX-License-Identifier: Apache-2.0
// Nodes respond in any order, and numbers are given in the order of arrival. Ties, samples and
// lists would differ from one request to the next. Pure.
#pragma once
#include "analysis/peers/fleet.h"

// Numbers everything by its name instead: nodes, classes, set-ups, and what belongs to them. So the
// same runs give the same bytes, whoever sent them first. After it no page may be added.
// ERR_NO_MEMORY.
int fleet_arrange(struct fleet *f, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// What things cost on this node as it is set up now: the newest stored value of each metric that
// model/speed.c names. Time estimates count with it instead of an assumed speed.
#pragma once
#include "core/node/machine.h"
#include "core/store/store.h"

// Sets m->topology.speeds. Runs count that succeeded on this node, on the hardware and with the
// set-up of m->fingerprint, by the method of today, within their time limit and undisturbed.
int found_speeds_look(struct machine *m, struct store *s, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Stored runs of the same request: how long they took is what an estimate can know best.
#pragma once
#include "core/node/machine.h"
#include "core/store/store.h"
#include "model/past.h"

// Runs of this node that asked what `s` asks (all but parameters of effort is the same), on
// hardware and with a set-up as in m->fingerprint, by the method of today, whole and without a
// budget. A scan has none: it takes longer where it finds something.
int past_runs_look(struct past_runs *out, struct store *store, const struct machine *m,
                   const struct spec *s, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Watches the node for admission: takes the readings, keeps the earlier ones, and holds the host's
// lock while a run is measured.
#pragma once
#include "core/admission/checks.h"

struct monitor;
// `root` as in core/node/load.h. The topology is the machine's and may be replaced in place.
struct monitor *monitor_new(const struct policy *p, const struct topology *t, const char *root,
                            struct err *err);
void monitor_free(struct monitor *a);                               // NULL is fine
void monitor_set_policy(struct monitor *a, const struct policy *p); // from now on
// Never blocks, takes less than 5 ms. `within`: the batch job that requests the run; NULL: none.
// ERR_NO_MEMORY.
int monitor_check(struct monitor *a, const struct plan *p, bool force,
                  const struct batch_place *within, struct admission *out, struct err *err);
// A run of ours begins and ends; between, the host's lock is ours. ERR_BUSY: another process took
// it since the check, and other_instance refuses.
int monitor_begin(struct monitor *a, const struct plan *p, bool force, struct err *err);
void monitor_end(struct monitor *a);
bool monitor_is_running(const struct monitor *a);
int monitor_lock(const struct monitor *a); // of the host, between; borrowed; -1: none is held
// While it is running, every MONITOR_LOOK_MS: does it make others wait? True: *b says how.
enum { MONITOR_LOOK_MS = 2000 };
bool monitor_disturbs(struct monitor *a, struct blocker *b);
// What changed since the run began that may have spoiled it: steal, swapping, throttling. Up to
// `most` blockers; how many. To be called before monitor_end.
int monitor_suffered(struct monitor *a, struct blocker *list, int most);
enum policy_action monitor_action(const struct monitor *a, enum admission_kind kind);

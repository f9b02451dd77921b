// SPDX-License-Identifier: Apache-2.0
// What is checked of a new run only. Stored runs and imports may have it, so spec_check does not
// look.
#pragma once
#include "model/spec.h"

// A member that cannot have an effect beside the others, though it is not what the benchmark (or
// quick) sets itself; effort that cannot give a result; and what spec_check_note refuses.
// ERR_INVALID names the member, and says what would be right.
int spec_check_request(const struct spec *s, struct err *err);
// That of a run which was measured, maybe for an earlier version: it accepted what has no effect.
// That gets its default here (quick's, if quick), so that it makes no series of its own. Errors as
// spec_from_json() has them.
int spec_from_run(struct spec *s, const struct json *object, struct err *err);

// The request for a run of a daemon that may be of another version: the benchmark, what differs
// from its defaults (those of quick, if quick), and what `given` has. The rest is up to the daemon,
// which may not know it, or know better. NULL: nothing.
void spec_write_request(const struct spec *s, const struct param_given *given, struct jsonw *w,
                        const char *key);

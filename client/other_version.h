// SPDX-License-Identifier: Apache-2.0
// Whether a refused run shows that the daemon is of another version than this program.
#pragma once
#include "client/config.h"
#include "model/spec.h"

// After a refusal (422) that names `member`, of a request that our own checks took: asks the daemon
// which parameters it has, and prints the hint if it has not this one, or not this value of it. Of
// a daemon that does not list them its version counts. Nothing is printed where neither is given.
void other_version_hint(const struct cli *c, const struct spec *s, const char *member);

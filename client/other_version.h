// SPDX-License-Identifier: Apache-2.0
// Whether a refused run shows that the daemon is of another version than this program.
#pragma once
#include "base/json.h"
#include "client/config.h"
#include "model/spec.h"

// Whether a response to GET /v1/benchmarks has a parameter of the benchmark, and this value of it.
enum other_version_lists { LISTS_NOTHING, LISTS_IT, LISTS_ANOTHER }; // LISTS_NOTHING: it is no list
enum other_version_lists other_version_lists(const struct json *told, const struct spec *s,
                                             const char *member);
enum { OTHER_VERSION_ROOM = 200 };
// What to say of the daemon then, by its response to GET /healthz (NULL: none). False: nothing.
bool other_version_text(enum other_version_lists lists, const struct json *alive, char *text,
                        size_t room);

// After a refusal (422) that names `member`, of a request that our own checks took: asks the daemon
// which parameters it has, and prints the hint if it has not this one, or not this value of it. Of
// a daemon that does not list them its version counts. Nothing is printed where neither is given.
void other_version_hint(const struct cli *c, const struct spec *s, const char *member);

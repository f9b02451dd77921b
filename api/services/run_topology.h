// SPDX-License-Identifier: Apache-2.0
// The topology of a stored run's own time.
#pragma once
#include "api/services/services.h"

// This machine's, if nothing has changed, else as it was stored. Borrowed until the next call but
// two. NULL: none that can be read is stored.
int run_topology(const struct api_services *api, const struct run *run, const struct topology **out,
                 struct err *err);

// SPDX-License-Identifier: Apache-2.0
// What the resources work with: the context of their routes.
#pragma once
#include "core/node/machine.h"
#include "core/os/loop.h"
#include "core/run/runner.h"
#include "core/store/store.h"
#include "core/upkeep/upkeep.h"
#include "http/messages/service.h"

struct api_services { // borrowed; in a worker there are the store and the machine only
    struct loop *loop;
    struct store *store;
    struct machine *machine;
    struct runner *runner;
    struct upkeep *upkeep;
    struct run_bodies *bodies;
};

static inline const struct api_services *api_of(const struct request *q)
{
    return q->service->context;
}

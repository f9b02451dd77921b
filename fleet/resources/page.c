// SPDX-License-Identifier: Apache-2.0
// The web page of the collector, which is part of the program.
#include "http/messages/page.h"
#include "fleet/resources/resources.h"

extern const struct embedded fleet_web_files[];

int fleetd_page(struct request *q, struct reply *r, struct err *err)
{
    return http_page(q, r, fleet_web_files, err);
}

// SPDX-License-Identifier: Apache-2.0
// Pages of summaries that the collector itself sends.
#pragma once
#include "http/messages/request.h"
#include "model/summary.h"

// Whose page it is: this machine's, if its name is one that a node could have; and the version.
void own_page_head(struct summary_page *head);
// ?form=: only summaries are here. ERR_INVALID.
int own_page_form(const struct request *q, struct err *err);

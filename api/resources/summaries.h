// SPDX-License-Identifier: Apache-2.0
// form=summary of the feed and of the list of runs: many runs in one small page (model/summary.h).
#pragma once
#include "core/store/store.h"
#include "http/messages/work.h"

enum {
    // No further run is begun beyond this, in either form.
    FEED_BYTES = 4 << 20,
};

// form=whole (otherwise) or form=summary.
int summaries_read_form(const struct request *q, bool *summary, struct err *err);

// A page of the feed: list[0…n) after seq `after`, up to the first run whose metrics are not made
// yet.
int summaries_feed(struct request *q, struct reply *r, int64_t after, const struct store_feed *feed,
                   const struct store_change *list, int n, struct err *err);
// A page of the list: those of the filter, or with ?per_benchmark=K the newest K of each benchmark.
int summaries_list(struct request *q, struct reply *r, const struct run_filter *f, struct err *err);
// What these cost.
void summaries_feed_work(const struct request *q, struct work *w, const struct store_change *list,
                         int n, struct err *why);
void summaries_list_work(const struct request *q, struct work *w, const struct run_filter *f,
                         struct err *why);

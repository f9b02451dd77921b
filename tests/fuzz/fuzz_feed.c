// SPDX-License-Identifier: Apache-2.0
// Any bytes as a page that a node sends to a collector, which stores it as `--ingest` does: read,
// put, and read from the store again. The store is a real one, so that pages meet what others left.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "fleet/store/archive.h"
#include "tests/fuzz/fuzz.h"

enum {
    FEED_PUTS = 2000, // then the store begins anew
    FEED_RECEIVED_S = 1795000000,
};

static struct {
    struct fleet_store *store;
    char path[300];
    int puts, stores;
} feed;

static void feed_open(void)
{
    char path[320];
    struct err err = {0};
    fleet_store_close(feed.store);
    snprintf(path, sizeof path, "%s/%d.db", feed.path, feed.stores++);
    feed.store = fleet_store_open(path, FLEET_STORE_WRITE, &err);
    fuzz_hold(feed.store != NULL);
    fleet_store_archives(feed.store, FLEET_ARCHIVE_ALL);
    feed.puts = 0;
}

void fuzz_feed_begin(const char *dir)
{
    snprintf(feed.path, sizeof feed.path, "%s", dir);
    feed_open();
}

static int hold_stored(void *ctx, const struct summary_page *p, struct err *err)
{
    (void)ctx;
    (void)err;
    for (int i = 0; i < p->n_runs; i++) {
        const struct summary *s = &p->runs[i];
        fuzz_hold(s->layout >= -1 && s->layout < p->n_layouts);
        for (int k = 0; s->layout >= 0 && k < p->layouts[s->layout].n; k++) {
            fuzz_hold(isfinite(s->values[k]) && s->values[k] > 0);
            fuzz_hold(isnan(s->lo[k]) || s->lo[k] <= s->values[k]);
            fuzz_hold(isnan(s->hi[k]) || s->hi[k] >= s->values[k]);
        }
    }
    return 0;
}

static void put_page(const struct summary_page *page)
{
    const char *name = *page->node ? page->node : "n1";
    const struct fleet_page one = {
        .name = name, .after = page->after, .received_ms = FEED_RECEIVED_S * 1000LL, .page = page};
    struct fleet_ack ack = {0};
    struct err err = {0};
    if (feed.puts++ == FEED_PUTS)
        feed_open();
    fuzz_hold(fleet_store_put(feed.store, &one, 1, &ack, &err) == 0);
    fuzz_hold(ack.stored >= 0 && ack.stored + ack.others <= page->n_runs && ack.next >= 0);
    const struct fleet_window w = {.node = name};
    fuzz_hold(fleet_store_window(feed.store, &w, hold_stored, NULL, &err) == 0);
}

void fuzz_feed(const uint8_t *data, size_t size)
{
    struct summary_page page CLEANUP(summary_page_fini) = {0};
    struct err err = {0};
    char *text = fuzz_text(data, size);
    CLEANUP_JSON struct json *j = json_parse(text, size, &err);
    fuzz_accepted = j && summary_page_read(j, &page, &err) == 0;
    if (fuzz_accepted)
        put_page(&page);
    free(text);
}

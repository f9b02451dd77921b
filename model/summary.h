// SPDX-License-Identifier: Apache-2.0
// The slim form of a run: what a fleet is judged by, without ranks and matrices. A page of the feed
// or of the list of runs holds many; the names of metrics stand once per page (a layout). Written
// by a node, read by a client or collector that does not trust the node. Pure.
//
//   {"form":"summary","node":"n1","version":"2.0.0","history_id":"…","after":0,
//    "layouts":[[["latency.local.dram.median_ns","ns"],…],…],
//    "runs":[{"seq":7,"id":7,"node":"n1","benchmark":"latency","variant":"","method":"prp4-v1",
//             "metrics_version":4,"state":"succeeded","imported":false,"forced":false,
//             "measured":"2026-11-22T04:10:09.123Z","finished":"…","duration_s":12.1,"label":"",
//             "n_ranks":8,"disturbed":0.02,"class":"62…","config":"…","topology":"…",
//             "layout":0,"values":[148.912,…],"widths":[12,15,…]}],
//    "notes":[{"seq":8,"run_seq":7,"run":7,"label":"before update","baseline":true}],
//    "next":8,"last":8,"more":false}
//
// values: in the layout's order and units, 6 significant digits. widths: two whole numbers per
// value, how far the 95 % interval reaches below and above it, in 1e-4 of it; -1: not known. A run
// without metrics has layout -1 and empty arrays. What a reader does not know it passes over, so
// that members can be added.
//
// The feed of a collector has the runs of many nodes. There "seq" is a number of that feed, and a
// run also has "node_history_id" and "node_seq": the history of its node, and its number there.
// "deleted" of the page is how many runs the collector had deleted before they were requested.
//
// A note, of a feed alone, says which label a run has now and whether it is in a baseline. It has a
// number in the feed. "run_seq" is the number of the run, which came before it, and "run" the run's
// id. In the feed of a collector it also has the name of the node, "node_history_id" and
// "node_seq", and "run_seq" is the run's number in the feed of its node. A page without notes may
// lack the member.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "model/metric.h"
#include "model/run.h"

enum {
    SUMMARY_RUNS_MAX = 1000, // of a page
    SUMMARY_LAYOUTS_MAX = SUMMARY_RUNS_MAX,
    SUMMARY_WIDTH_MAX = 1000000, // a hundred times the value; below it a value reaches to 0
};

struct summary_metric {
    char name[64], unit[8];
};

struct summary_layout {
    int n;
    struct summary_metric *list; // owned by the page
};

struct summary {
    int64_t seq, id;
    char node[64];
    char benchmark[24];
    char variant[256]; // metrics_variant: only runs with the same are comparable
    char method[40];
    int metrics_version;
    enum run_state state;
    bool imported, forced;
    int64_t measured_ms, finished_ms; // UTC; 0: not known
    double duration_s;                // NaN: not known
    char label[RUN_LABEL_MAX + 1];
    int64_t n_ranks;
    double disturbed; // share of samples, 0.01: at most that; NaN: unknown
    char class_hash[65], config_hash[65], topology_hash[65]; // "": not known
    // Of the feed of a collector: where the run is in the feed of its node. "": it is of a node.
    char node_history[40];
    int64_t node_seq;
    int layout;              // index in the page; -1: no metrics
    float *values, *lo, *hi; // layout's n each, owned by the page; lo and hi NaN: not known
};

struct summary_note {
    int64_t seq, run_seq, run;
    char label[RUN_LABEL_MAX + 1];
    bool baseline;
    // Of the feed of a collector, as of a run. "" and 0: it is of a node.
    char node[64], node_history[40];
    int64_t node_seq;
};

struct summary_page {
    char node[64], version[32], history_id[40]; // "" if the sender is older than the member
    // A feed: seq after which it begins, and the next one does. A list: `next` is the id of the
    // last run, and the next page is GET …?cursor=b<next>.
    int64_t after, next, last;
    int64_t deleted; // of the feed of a collector
    bool more;
    int n_layouts, n_runs, n_notes;
    struct summary_layout *layouts;
    struct summary *runs;
    struct summary_note *notes;
    void *memory; // behind all pointers above
};

// Reads a page of a node that is not trusted: every member has the type and the limits of this
// header, texts can be printed, values are finite and above 0. ERR_INVALID names the member
// ("runs[3].values"); ERR_TOO_LARGE; ERR_NO_MEMORY. *out stays untouched on failure.
int summary_page_read(const struct json *document, struct summary_page *out, struct err *err);
void summary_page_fini(struct summary_page *p);

// Writing: runs are added one by one. Layouts are collected meanwhile, and stand before the runs.
struct summary_writer {
    struct buf layouts, runs, notes, scratch; // owned
    struct jsonw layouts_w, runs_w, notes_w;
    int n_layouts, n_runs, n_notes;
    struct {
        size_t at, len;                  // in `layouts`
        const struct summary_layout *of; // that it was copied from; NULL: made of metrics
    } layout[SUMMARY_LAYOUTS_MAX];
};

void summary_writer_init(struct summary_writer *w);
void summary_writer_fini(struct summary_writer *w);
size_t summary_writer_bytes(const struct summary_writer *w); // of the page so far
// At most SUMMARY_RUNS_MAX times. Of *s the members from `layout` on do not count. n -1: the run
// has no metrics. Values that are not finite and above 0 are left out.
void summary_writer_add(struct summary_writer *w, const struct summary *s,
                        const struct metric *list, int n);
// A run that was read from a page, with the same numbers. `layout` is that page's, and stays where
// it is until the end; NULL: the run has no metrics.
void summary_writer_copy(struct summary_writer *w, const struct summary *s,
                         const struct summary_layout *layout);
// At most SUMMARY_RUNS_MAX times.
void summary_writer_note(struct summary_writer *w, const struct summary_note *n);
// The note alone, as it stands in a page.
void summary_note_write(const struct summary_note *n, struct jsonw *w);
// The page, with everything of *head before `n_layouts`, appended to `out`.
void summary_writer_end(struct summary_writer *w, const struct summary_page *head, struct buf *out);
// An end of an interval as a whole number of 1e-4 of the value, and back: exactly what is read from
// a page. -1 and NaN: not known. sign: -1 for the lower end, 1 for the upper one.
int summary_width(float value, float end);
float summary_end(float value, int sign, int width);
// Puts a variant of any length into s->variant: what does not fit ends in its hash, so that two
// variants never become one.
void summary_set_variant(struct summary *s, const char *variant);

// SPDX-License-Identifier: Apache-2.0
// Targets as text and as numbers, there and back.
#include "model/target.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/matrix.h"
#include "tests/unit/tap.h"

static void reads(const char *text, const char *want)
{
    struct target_list l;
    struct err err = {0};
    char got[200] = "";
    if (targets_read(&l, text, "targets", &err) == 0)
        targets_write(l.list, l.n, got, sizeof got);
    CHECK(err.code == ERR_NONE && strcmp(got, want) == 0, "%s is %s, want %s %s", text, got, want,
          err.text);
}

static void refuses(const char *text, const char *word)
{
    struct target_list l;
    struct err err = {0};
    CHECK(targets_read(&l, text, "targets", &err) < 0 && strcmp(err.member, "targets") == 0 &&
              strstr(err.text, word),
          "%s: %s", text, err.text);
}

static void lists(void)
{
    struct target_list l;
    reads("2,0", "0,2");
    reads("0+interleave:0-3", "0+interleave:0-3");
    reads("interleave:3,1+weighted:0=3,2=1", "interleave:1,3+weighted:0,2");
    CHECK(targets_read(&l, "all+interleave:all+weighted:0=3,1=1", "targets", NULL) == 0 && l.all &&
              l.n == 2 && l.weights[0] == 3 && l.weights[1] == 1,
          "all nodes, and interleaved memory");
    CHECK(target_resolve(l.list[0], 5) == target_interleaved(5, false) &&
              target_resolve(l.list[1], 5) == target_interleaved(3, true) &&
              target_resolve(7, 5) == 7,
          "over all nodes, where none is named");
    refuses("interleave:0-3+1", "may follow the nodes");
    refuses("interleave:0,1+interleave:0-1", "twice");
    refuses("interleave:", "");
    refuses("interleave:28", "below 28");
    refuses("weighted:0=0", "weight of 1 to 255");
    refuses("weighted:0=3,0=1", "two weights");
    refuses("weighted:0=3,1", "no NODE=WEIGHT");
    refuses("sideways:0", "");
    CHECK(target_is_policy("interleave:0-1") && target_is_policy("weighted:all") &&
              !target_is_policy("0") && !target_is_policy("interleave:0+weighted:0"),
          "one interleaved target is a policy");
}

static void shares(void)
{
    int weights[TARGET_NODES] = {3, 1, 4}, two = target_interleaved(3, false),
        by_weight = target_interleaved(3, true);
    CHECK(fabs(target_share(two, 0, weights) - 0.5) < 1e-9 && target_share(two, 2, weights) == 0,
          "in turn, all nodes have the same");
    CHECK(fabs(target_share(by_weight, 0, weights) - 0.75) < 1e-9 &&
              fabs(target_share(by_weight, 1, weights) - 0.25) < 1e-9,
          "by weight 3 of 4 pages");
    CHECK(target_share(4, 4, NULL) == 1 && target_share(4, 3, NULL) == 0, "a node has its own");
    CHECK(target_has(two, 1) && !target_has(two, 2) && target_has(2, 2) && !target_has(-1, 0),
          "nodes of a target");
}

static void kernel(void)
{
    int none[TARGET_NODES] = {0}, equal[TARGET_NODES] = {1, 1}, same[TARGET_NODES] = {6, 2};
    struct target_list l;
    struct err err = {0};
    targets_read(&l, "weighted:0=3,1=1", "numa", NULL);
    CHECK(targets_check_weights(&l, none, "numa", &err) < 0 && strcmp(err.member, "numa") == 0 &&
              strstr(err.text, "Linux 6.9"),
          "a kernel without: %s", err.text);
    CHECK(targets_check_weights(&l, equal, "numa", &err) < 0 && strstr(err.text, "0=1,1=1"),
          "other weights: %s", err.text);
    CHECK(targets_check_weights(&l, same, "numa", NULL) == 0, "the ratio counts");
    targets_read(&l, "weighted:0-1", "numa", NULL);
    CHECK(targets_check_weights(&l, equal, "numa", NULL) == 0, "the kernel's own");
    targets_read(&l, "0+interleave:0-1", "targets", NULL);
    CHECK(targets_check_weights(&l, none, "targets", NULL) == 0, "in turn needs no weights");
}

static void names(void)
{
    char text[TARGET_LABEL_ROOM];
    int far = target_interleaved(0xb, true), from, to;
    target_words(far, text, sizeof text);
    CHECK_STR(text, "nodes 0-1,3, interleaved by weight", "in a sentence");
    target_metric(far, text, sizeof text);
    CHECK_STR(text, "w0-1_3", "in a metric");
    target_metric(3, text, sizeof text);
    CHECK_STR(text, "n3", "a node");
    int64_t value = axis_pair(1000, far);
    struct axis path = {.name = "path", .n = 1, .values = &value};
    axis_unpair(value, &from, &to);
    CHECK(from == 1000 && to == far && value < (int64_t)1 << 53, "a path to it fits a JSON number");
    axis_label(&path, 0, text, sizeof text);
    CHECK_STR(text, "1000->weighted:0-1,3", "its label");
    CLEANUP_BUF struct buf csv = BUF_INIT;
    axis_csv(&path, 0, &csv);
    CHECK_STR(buf_text(&csv), ",\"1000->weighted:0-1,3\"", "its label in CSV");
}

int main(void)
{
    lists();
    shares();
    kernel();
    names();
    return tap_done();
}

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
    refuses("interleave:0-3+1", "may follow the nodes");
    refuses("interleave:0,1+interleave:0-1", "twice");
    refuses("interleave:", "");
    refuses("interleave:28", "below 28");
    refuses("weighted:0=0", "weight of 1 to 255");
    refuses("weighted:0=3,0=1", "two weights");
    refuses("weighted:0=3,1", "no NODE=WEIGHT");
    refuses("weighted:0=3,1=4294967297", "no NODE=WEIGHT");
    refuses("weighted:4294967296=3,1=1", "no NODE=WEIGHT");
    refuses("weighted:0=3,1= 1", "no NODE=WEIGHT");
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

// A machine whose nodes 0, 1 and 2 have memory. Node 2 has to be named.
static int check_of_three(const void *ctx, int node, const char *member, struct err *err)
{
    (void)ctx;
    return node >= 0 && node < 3 ? 0 : err_set(err, ERR_INVALID, member, "node %d", node);
}

static int settle(const char *text, const int *weights, int *out, struct err *err)
{
    static const int nodes[] = {0, 1};
    const struct target_machine m = {2, nodes, weights, check_of_three, NULL};
    struct target_list l;
    int n = 0;
    if (targets_read(&l, text, "targets", err) < 0 ||
        targets_settle(out, &n, &l, &m, "targets", err) < 0)
        return -1;
    return n;
}

static void settled(void)
{
    static const int none[TARGET_NODES] = {0};
    const struct target_machine bare = {0, NULL, none, check_of_three, NULL};
    int out[TARGETS_MAX], both = target_interleaved(3, false), n = 0;
    struct target_list l;
    struct err err = {0};
    CHECK(settle("all+interleave:all", none, out, &err) == 3 && out[0] == 0 && out[1] == 1 &&
              out[2] == both,
          "all is what needs no name, one by one and interleaved: %s", err.text);
    CHECK(settle("2,0+interleave:0,2", none, out, &err) == 3 && out[1] == 2, "what is named");
    CHECK(settle("0,3", none, out, &err) < 0 && strcmp(err.text, "node 3") == 0,
          "what is not there");
    CHECK(settle("interleave:1,4", none, out, &err) < 0 && strcmp(err.text, "node 4") == 0,
          "nor over it");
    CHECK(settle("interleave:all+interleave:0-1", none, out, &err) < 0 && strstr(err.text, "twice"),
          "two texts of the same memory: %s", err.text);
    targets_read(&l, "all", "targets", NULL);
    CHECK(targets_settle(out, &n, &l, &bare, "targets", &err) < 0 &&
              strcmp(err.text, "node -1") == 0,
          "no memory at all");
    targets_read(&l, "interleave:all", "numa", NULL);
    CHECK(target_settle(&l.list[0], &l, &bare, "numa", &err) < 0 && strcmp(err.member, "numa") == 0,
          "nor to interleave over");
}

static void kernel(void)
{
    int none[TARGET_NODES] = {0}, equal[TARGET_NODES] = {1, 1}, same[TARGET_NODES] = {6, 2};
    int out[TARGETS_MAX];
    struct err err = {0};
    CHECK(settle("weighted:0=3,1=1", none, out, &err) < 0 && strstr(err.text, "Linux 6.9"),
          "a kernel without: %s", err.text);
    CHECK(settle("weighted:0=3,1=1", equal, out, &err) < 0 && strstr(err.text, "0=1,1=1"),
          "other weights: %s", err.text);
    CHECK_INT(settle("weighted:0=3,1=1", same, out, NULL), 1, "the ratio counts");
    CHECK_INT(settle("weighted:0-1", equal, out, NULL), 1, "the kernel's own");
    CHECK_INT(settle("0+interleave:0-1", none, out, NULL), 2, "in turn needs no weights");
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
    settled();
    kernel();
    names();
    return tap_done();
}

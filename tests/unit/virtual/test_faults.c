// SPDX-License-Identifier: Apache-2.0
// The script of faults: who, what, when; and what is no script.
#include "tests/unit/tap.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "virtual/faults.h"

static struct world *w;

static enum fault_kind at(const struct faults *f, int node, int64_t ms)
{
    double value = 0;
    return faults_now(f, node, ms, &value);
}

static void script(void)
{
    struct faults f CLEANUP(faults_free) = {0};
    struct err err = {0};
    double value = 0;
    CHECK_INT(
        faults_read(&f,
                    "# comment\nnode[001-010] silent\n node005 drips=7 10-20; node020 refuses 5- "
                    ";node021 flaps=3 10-25\n",
                    w, &err),
        0, "a script %s", err.text);
    CHECK_INT(at(&f, 0, 0), FAULT_SILENT, "a set of nodes");
    CHECK_INT(at(&f, 10, 0), FAULT_NONE, "no other node");
    CHECK_INT(at(&f, 4, 15000), FAULT_SILENT, "the first line counts");
    CHECK_INT(at(&f, 19, 4999), FAULT_NONE, "not yet");
    CHECK(faults_refuses(&f, 19, 5000) && faults_refuses(&f, 19, 1 << 30), "from then on");
    CHECK(!faults_refuses(&f, 20, 9999) && faults_refuses(&f, 20, 10000) &&
              !faults_refuses(&f, 20, 13000) && faults_refuses(&f, 20, 16000) &&
              !faults_refuses(&f, 20, 25000),
          "flapping");
    CHECK_INT(faults_next_change(&f, 0), 5000, "listeners change at a beginning");
    CHECK_INT(faults_next_change(&f, 5000), 10000, "at the next one");
    CHECK_INT(faults_next_change(&f, 13500), 16000, "at each turn");
    CHECK_INT(faults_next_change(&f, 24000), 25000, "at an end");
    CHECK(faults_next_change(&f, 25000) == INT64_MAX, "never again");
    struct faults dripping CLEANUP(faults_free) = {0};
    faults_read(&dripping, "node005 drips=7 10-20", w, &err);
    CHECK_INT(faults_now(&dripping, 4, 10000, &value), FAULT_DRIPS, "in its period");
    CHECK(value == 7, "with its value");
}

static void shares(void)
{
    struct faults f CLEANUP(faults_free) = {0};
    int n = 0, kinds[FAULT_KINDS] = {0};
    CHECK_INT(faults_read(&f, "10% mixed", w, NULL), 0, "a share of all nodes");
    for (int i = 0; i < 1000; i++) {
        enum fault_kind k = at(&f, i, 0);
        kinds[k]++;
        n += k != FAULT_NONE;
    }
    CHECK(n > 70 && n < 130, "is about that share: %d of 1000", n);
    CHECK(kinds[FAULT_SILENT] > 10 && kinds[FAULT_DRIPS] > 10 && kinds[FAULT_CUT] > 10, "by turns");
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw out = jsonw_to(&text);
    jsonw_object(&out, NULL);
    faults_write_json(&f, w, &out);
    jsonw_end(&out);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&text), text.len, NULL);
    CHECK_INT(json_count(json_get(j, "faults")), 6, "each kind has its nodes in the truth");
}

static void no_scripts(void)
{
    static const char *const bad[] = {
        "node001",         "node001 sleepy",     "node001 silent 5",     "node001 silent 9-5",
        "node001 drips=0", "node001 drips=fast", "node001 silent 1-2 3", "node[1- silent",
        "101% silent",     "x% silent"};
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        struct faults f CLEANUP(faults_free) = {0};
        struct err err = {0};
        CHECK(faults_read(&f, bad[k], w, &err) < 0 && err.code == ERR_INVALID && *err.text,
              "no fault: %s", bad[k]);
    }
}

static void in_world(int nodes, void (*test)(void))
{
    struct world_options o = {0};
    param_defaults(&world_options, &o);
    o.nodes = nodes;
    w = world_new(&o, NULL);
    test();
    world_free(w);
}

int main(void)
{
    in_world(999, script); // node001
    in_world(999, no_scripts);
    in_world(1000, shares);
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// Lines of /proc/self/cgroup, of both versions.
#include "base/cleanup.h"
#include "base/own_cgroups.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/tap.h"

static char root[64];

static void test_lines(void)
{
    struct own_cgroups g CLEANUP(own_cgroups_close);
    dir_write(root, "proc/self/cgroup",
              "nonsense\n11:cpuacct,cpu:/a/b\n3:name=memory:/x\n0::/\n1:pids:/with:colon\n");
    own_cgroups_open(&g, root);
    CHECK(own_cgroups_next(&g), "what is no line is skipped");
    CHECK(own_cgroups_has(&g, "cpu") && own_cgroups_has(&g, "cpuacct"), "cpuacct and cpu");
    CHECK(!own_cgroups_has(&g, "cp") && !own_cgroups_has(&g, "acct"), "whole names only");
    CHECK_STR(g.path, "/a/b", "its path");
    CHECK(own_cgroups_up(&g) && !strcmp(g.path, "/a"), "the group above: %s", g.path);
    CHECK(own_cgroups_up(&g) && !*g.path && !own_cgroups_up(&g), "and the root, which is the last");
    CHECK(own_cgroups_next(&g) && !own_cgroups_has(&g, "memory"), "a name is no controller");
    CHECK(own_cgroups_next_v2(&g) && !*g.path, "the root of v2");
    CHECK(own_cgroups_next(&g) && !strcmp(g.path, "/with:colon"), "a colon in a path: %s", g.path);
    CHECK(!own_cgroups_next(&g) && !ferror(g.f), "the end");
}

static void test_none(void)
{
    struct own_cgroups g CLEANUP(own_cgroups_close);
    own_cgroups_open(&g, "/nowhere");
    CHECK(!g.f && !own_cgroups_next(&g) && !own_cgroups_next_v2(&g), "no such file");
}

int main(void)
{
    dir_make(root);
    test_lines();
    test_none();
    dir_remove(root);
    return tap_done();
}

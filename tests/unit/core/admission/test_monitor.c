// SPDX-License-Identifier: Apache-2.0
// The monitor: the host's lock, what a run of ours leaves in averages, and whom a run disturbs.
#include "tests/unit/core/admission/node_folder.h"

static void test_lock(void)
{
    char path[100], link[110];
    idle();
    snprintf(path, sizeof path, "%s/lock", root);
    snprintf(link, sizeof link, "%s/link", root);
    int mine = host_lock_take(path);
    CHECK(mine >= 0, "the lock");
    CHECK(host_lock_take(path) == HOST_LOCK_TAKEN, "is taken");
    close(mine);
    mine = host_lock_take(path);
    CHECK(mine >= 0, "and given back");
    close(mine);
    CHECK(symlink(path, link) == 0 && host_lock_take(link) == HOST_LOCK_NONE,
          "a link is not followed");
    struct stat st;
    char secret[110];
    snprintf(secret, sizeof secret, "%s/secret", root);
    put("secret", "");
    chmod(secret, 0600);
    unlink(link);
    CHECK_INT(linkat(AT_FDCWD, secret, AT_FDCWD, link, 0), 0,
              "somebody makes the lock a second name of a secret of ours");
    mine = host_lock_take(link);
    CHECK(mine >= 0 && stat(secret, &st) == 0 && (st.st_mode & 0777) == 0600, "it stays secret");
    close(mine);
    CHECK(host_lock_take("/nonexistent/lock") == HOST_LOCK_NONE, "without a place for it");
}

static void test_monitor(void)
{
    struct admission a;
    struct err err = {0};
    idle();
    put("run/lock/x", "");
    struct monitor *one = new_monitor(), *two = new_monitor();
    CHECK(monitor_check(one, &plan, false, NULL, &a, &err) == 0 && a.n == 0, "the node is free");
    CHECK_INT(monitor_begin(one, &plan, false, &err), 0, "a run begins");
    CHECK(monitor_check(two, &plan, false, NULL, &a, &err) == 0 && a.n == 1 &&
              a.list[0].kind == ADMIT_OTHER_INSTANCE,
          "another daemon sees it: %s", a.list[0].text);
    CHECK(monitor_begin(two, &plan, false, &err) < 0 && err.code == ERR_BUSY, "and cannot begin");
    put("proc/loadavg", "8.00 0.10 0.12 5/412 9123\n");
    CHECK(monitor_check(one, &plan, false, NULL, &a, &err) == 0 && a.n == 0,
          "while it is going on, the node's load is our own");
    monitor_end(one);
    CHECK(monitor_check(one, &plan, false, NULL, &a, &err) == 0 && a.n == 1 &&
              a.list[0].kind == ADMIT_LOAD,
          "a load of 8 is not what a run of two ranks leaves within a moment");
    monitor_free(two);
    two = new_monitor();
    idle();
    put("run/lock/x", "");
    CHECK_INT(monitor_begin(two, &plan, false, &err), 0, "the lock was given back");
    monitor_free(two);
    monitor_free(one);
}

// Somebody deletes the lock's file, and another daemon locks a new one: the run tells of it.
static void test_lock_deleted(void)
{
    struct err err;
    struct blocker told[4];
    char path[100];
    idle();
    put("run/lock/x", "");
    snprintf(path, sizeof path, "%s%s", root, policy.host_lock);
    struct monitor *a = new_monitor();
    CHECK(monitor_begin(a, &plan, false, &err) == 0 && monitor_suffered(a, told, 4) == 0,
          "a run begins, with nothing to tell");
    CHECK(unlink(path) == 0 && monitor_suffered(a, told, 4) == 1 &&
              told[0].kind == ADMIT_OTHER_INSTANCE && strstr(told[0].text, "deleted"),
          "its lock is gone: %s", told[0].text);
    CLEANUP_FD int other = host_lock_take(path);
    CHECK(other >= 0 && monitor_suffered(a, told, 4) == 1, "somebody else has that name");
    monitor_end(a);
    CHECK_INT(monitor_suffered(a, told, 4), 0, "after the run it is nobody's business");
    monitor_free(a);
}

// A machine whose groups tell nothing: more tasks than CPUs.
static void test_crowd(void)
{
    struct err err;
    struct blocker b;
    idle();
    struct monitor *a = new_monitor();
    CHECK_INT(monitor_begin(a, &plan, false, &err), 0, "a run begins");
    put("proc/loadavg", "8.00 0.10 0.12 9/412 9123\n");
    CHECK(!monitor_disturbs(a, &b), "eight tasks besides us on eight CPUs");
    put("proc/loadavg", "8.00 0.10 0.12 11/412 9123\n");
    CHECK(!monitor_disturbs(a, &b) && monitor_disturbs(a, &b) && strstr(b.text, "2 tasks more"),
          "ten, twice: %s", b.text);
    monitor_free(a);
}

static void test_suffered(void)
{
    struct err err;
    struct blocker list[4];
    idle();
    struct monitor *a = new_monitor();
    CHECK_INT(monitor_begin(a, &plan, false, &err), 0, "a run begins");
    spend_us();
    CHECK_INT(monitor_suffered(a, list, 4), 0, "nothing happened");
    put_stat(1, 0, 800, 1000);
    put("proc/loadavg", "8.00 0.10 0.12 11/412 9123\n");
    CHECK(monitor_suffered(a, list, 4) == 1 && list[0].kind == ADMIT_STEAL, "steal: %s",
          list[0].text);
    monitor_free(a);
}

int main(void)
{
    if (!set_up())
        return 1;
    test_lock();
    test_monitor();
    test_lock_deleted();
    test_disturbing();
    test_crowd();
    test_suffered();
    return tear_down();
}

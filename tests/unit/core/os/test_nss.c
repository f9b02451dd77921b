// SPDX-License-Identifier: Apache-2.0
// Accounts and groups by name, and the child that asks for them. Who answers is this file: its
// getpwnam, getpwuid and getgrnam take the place of the C library's.
#include "core/os/nss.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/os/child.h"
#include "tests/unit/tap.h"

static char alice[] = "alice", lengthy[] = "a-name-of-more-than-sixty-three-characters-would-be-cut"
                                           "-short-and-would-be-another's";

struct passwd *getpwnam(const char *name)
{
    static struct passwd pw = {.pw_uid = 71, .pw_gid = 72};
    if (!strcmp(name, "aborts"))
        abort();
    if (!strcmp(name, "lacks"))
        errno = ENOMEM;
    if (!strcmp(name, "unknown"))
        errno = ENOENT; // as modules leave it
    pw.pw_name = !strcmp(name, "long") ? lengthy : alice;
    return !strcmp(name, "alice") || !strcmp(name, "long") ? &pw : NULL;
}

struct passwd *getpwuid(uid_t uid)
{
    static struct passwd pw = {.pw_uid = 71, .pw_gid = 72, .pw_name = alice};
    return uid == 71 ? &pw : NULL;
}

struct group *getgrnam(const char *name)
{
    static struct group g = {.gr_gid = 73, .gr_name = alice};
    return strcmp(name, "alice") == 0 ? &g : NULL;
}

static void test_lookup(void)
{
    struct lookup l;
    struct err err;
    CHECK(lookup_user(&l, "alice", &err) == 0 && l.uid == 71 && l.gid == 72 &&
              !strcmp(l.name, "alice"),
          "an account by its name");
    CHECK(lookup_user_id(&l, 71, &err) == 0 && l.gid == 72 && !strcmp(l.name, "alice"),
          "and by its number");
    CHECK(lookup_group(&l, "alice", &err) == 0 && l.gid == 73 && l.uid == (uid_t)-1, "a group");
    CHECK(lookup_user(&l, "unknown", &err) < 0 && err.code == ERR_NOT_FOUND, "no account: %s",
          err.text);
    CHECK(lookup_user_id(&l, 5, &err) < 0 && err.code == ERR_NOT_FOUND, "nor by number");
    CHECK(lookup_group(&l, "unknown", &err) < 0 && err.code == ERR_NOT_FOUND, "no group");
    CHECK(lookup_user(&l, "long", &err) < 0 && err.code == ERR_NOT_FOUND,
          "a name that would be cut short is none");
}

static void test_trouble(void)
{
    struct lookup l;
    struct err err;
    CHECK(lookup_user(&l, "lacks", &err) < 0 && err.code == ERR_UNAVAILABLE &&
              strstr(err.text, strerror(ENOMEM)),
          "without memory it is not known whether there is one: %s", err.text);
    CHECK(lookup_user(&l, "aborts", &err) < 0 && err.code == ERR_INTERNAL &&
              strstr(err.text, "signal"),
          "a module that ends its program does not end ours: %s", err.text);
}

static int write_there(void *arg)
{
    int *shared = arg;
    *shared = 7;
    return CHILD_RESULT_MAX;
}

static int stay(void *arg)
{
    int *shared = arg;
    *shared = getpid();
    while (*shared)
        pause();
    return 0;
}

static void test_child(void)
{
    struct err err;
    int *shared = child_share(sizeof *shared);
    CHECK(shared && *shared == 0, "memory is zeroed");
    CHECK(child_run(write_there, shared, 10000, &err) == CHILD_RESULT_MAX && *shared == 7,
          "what a child returns and writes comes to us");
    // Long enough for it to have begun, and not longer than it takes to be believed.
    CHECK(child_run(stay, shared, 200, &err) < 0 && err.code == ERR_TIMEOUT, "%s", err.text);
    CHECK(*shared == 7 || kill(*shared, 0) < 0, "one that does not end is ended and buried");
    child_unshare(shared, sizeof *shared);
    child_unshare(NULL, 1);
}

int main(void)
{
    test_lookup();
    test_trouble();
    test_child();
    return tap_done();
}

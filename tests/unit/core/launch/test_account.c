// SPDX-License-Identifier: Apache-2.0
// Who ranks run as. Never root, unless root was named; needs root itself to show it.
#include "core/launch/account.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "base/log.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/tap.h"

static char home[64];
static char run_dir[80];
static struct launch_paths paths;

static void build(mode_t mode)
{
    char folder[80];
    dir_write(home, "build/numa_bench", "#!/bin/sh\nexit 7\n");
    dir_write(home, "build/numa_bench_mpi.so", "a module");
    dir_write(home, "run/other", "");
    snprintf(folder, sizeof folder, "%s/build", home);
    snprintf(run_dir, sizeof run_dir, "%s/run", home);
    snprintf(paths.bench, sizeof paths.bench, "%s/build/numa_bench", home);
    chmod(paths.bench, 0755);
    chmod(folder, mode);
    chmod(run_dir, 0711);
    chmod(home, 0755);
}

static int run_as(const struct account *a, const char *program)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (setgid(a->gid) == 0 && setuid(a->uid) == 0)
            execl(program, program, NULL);
        _exit(1);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_reachable(void)
{
    struct account a;
    struct err err = {0};
    char before[sizeof paths.bench];
    build(0755);
    memcpy(before, paths.bench, sizeof before);
    CHECK(account_find(&a, NULL, run_dir, &paths, &err) == 0 && a.uid != 0 && !a.root,
          "ranks run as %s", a.text);
    CHECK_STR(paths.bench, before, "with the bench where it is");
    account_forget_copy(&paths, run_dir);
    CHECK_INT(access(paths.bench, F_OK), 0, "which is no copy to be removed");
}

// A clone below /root.
static void test_copy(void)
{
    struct account a;
    struct err err = {0};
    struct stat st;
    char want[100];
    build(0700);
    snprintf(want, sizeof want, "%s/numa_bench", run_dir);
    CHECK(account_find(&a, "nobody", run_dir, &paths, &err) == 0 && a.uid != 0,
          "it cannot reach the bench: %s", a.text);
    CHECK_STR(paths.bench, want, "it gets a copy");
    CHECK(stat(want, &st) == 0 && (st.st_mode & 07777) == 0755 && st.st_uid == 0,
          "which it cannot change");
    CHECK_INT(run_as(&a, want), 7, "and can run");
    snprintf(want, sizeof want, "%s/numa_bench_mpi.so", run_dir);
    CHECK_INT(access(want, R_OK), 0, "with its module");
    account_forget_copy(&paths, run_dir);
    CHECK(access(want, F_OK) < 0 && access(paths.bench, F_OK) < 0, "and both are removed");
}

// A link that somebody left there is replaced, not followed.
static void test_link(void)
{
    struct account a;
    struct err err = {0};
    struct stat st;
    char target[100], link[100];
    build(0700);
    dir_write(home, "precious", "mine");
    snprintf(target, sizeof target, "%s/precious", home);
    snprintf(link, sizeof link, "%s/numa_bench", run_dir);
    CHECK_INT(symlink(target, link), 0, "a link in the place of the copy");
    CHECK(account_find(&a, "nobody", run_dir, &paths, &err) == 0 && stat(target, &st) == 0 &&
              st.st_size == 4,
          "what it leads to is untouched");
    CHECK(lstat(link, &st) == 0 && S_ISREG(st.st_mode), "the copy is a file");
    account_forget_copy(&paths, run_dir);
}

static void test_none(void)
{
    struct account a;
    struct err err = {0};
    build(0755);
    chmod(home, 0700);
    CHECK(account_find(&a, NULL, run_dir, &paths, &err) < 0 && err.code == ERR_UNAVAILABLE &&
              strstr(err.text, "run directory") && strstr(err.text, "--job-user=root"),
          "%s", err.text);
    CHECK(a.uid != 0 && !a.root && strstr(a.text, "none ("), "there is none: %s", a.text);
    CHECK(account_find(&a, "nobody", run_dir, &paths, &err) < 0 && a.uid != 0,
          "nor when it was named");
    chmod(home, 0755);
    snprintf(paths.mpirun, sizeof paths.mpirun, "%s/build/mpirun", home);
    CHECK_INT(account_find(&a, NULL, run_dir, &paths, &err), 0,
              "an mpirun that it cannot run keeps it from MPI, not from measuring");
    *paths.mpirun = '\0';
    CHECK(account_find(&a, "no-such-account", run_dir, &paths, &err) < 0 && err.code == ERR_USAGE,
          "%s", err.text);
}

static void test_told(void)
{
    struct account a;
    struct err err = {0};
    build(0700);
    CHECK(account_find(&a, "root", run_dir, &paths, &err) == 0 && a.root && a.uid == 0 &&
              strstr(a.text, "--job-user"),
          "root when it is named: %s", a.text);
}

int main(void)
{
    log_init(LOG_LVL_ERROR, 0);
    if (geteuid() != 0) {
        struct account a;
        struct err err;
        CHECK(account_find(&a, "root", "/nonexistent", NULL, &err) == 0 && a.uid == geteuid() &&
                  !a.root,
              "not root, so ourselves whatever was named: %s", a.text);
        return tap_done();
    }
    dir_make(home);
    test_reachable();
    test_copy();
    test_link();
    test_none();
    test_told();
    dir_remove(home);
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// Programs that pretend to be mpirun, and what a look says of each.
#include "tests/unit/tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/launch/mpirun_version.h"
#include "core/launch/programs.h"
#include "core/os/processes.h"
#include "tests/unit/core/dir.h"

static char dir[64], mpirun[100];
static struct loop *loop;
static struct launch_look *look;

static void done(void *ctx)
{
    (void)ctx;
    loop_stop(loop);
}

static void write_mpirun(const char *script)
{
    dir_write(dir, "new", script);
    char made[100];
    snprintf(made, sizeof made, "%s/new", dir);
    chmod(made, 0755);
    rename(made, mpirun); // another file, also within a tick of the clock
}

static const struct launch_found *looked(void)
{
    struct err err;
    if (!launch_look_begin(look))
        abort();
    loop_run(loop, &err);
    return launch_look_found(look);
}

static const struct launch_paths *told(const char *script)
{
    write_mpirun(script);
    return &looked()->paths;
}

// A kernel or a container that allows no namespace is the other half of this.
static bool possible(void)
{
    const struct launch_paths *p = told("#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'\n");
    if (!p->mpi_major)
        printf("# %s\n", p->mpi_why);
    return p->mpi_major == 4 || !strstr(p->mpi_why, "no network namespace");
}

static void test_versions(void)
{
    CHECK(told("#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'\n")->mpi_major == 4, "Open MPI 4");
    CHECK(told("#!/bin/sh\n[ -n \"$HOME\" ] && printf 'mpirun (Open MPI) 5.0.7\\n\\nReport\\n'\n")
                  ->mpi_major == 5,
          "Open MPI 5 needs HOME");
    CHECK(told("#!/bin/sh\necho loading a module\necho 'mpirun (Open MPI) 5.0.7'\nexec sleep 100\n")
                  ->mpi_major == 5,
          "a wrapper that prints more, and does not end");
}

static void test_others(void)
{
    static const struct {
        const char *script, *word;
    } cases[] = {
        {"#!/bin/sh\necho 'HYDRA build details:'\n", "HYDRA build details"},
        {"#!/bin/sh\nexit 1\n", "prints nothing"},
        {"#!/bin/sh\nexec yes\n", "prints \"y\""},
        {"#!/bin/sh\necho 'unrecognized argument version' >&2\nexit 255\n", "unrecognized"},
        {"#!/bin/sh\nprintf '\\033[31mmpirun (Open MPI) 4\\n'\n", "?[31m"},
        {"#!/bin/sh\necho 'mpirun (Open MPI) x'\n", "not Open MPI"},
        {"#!/nonexistent/shell\n", "cannot run"},
        {"nothing that the kernel knows", "cannot run"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct launch_paths *p = told(cases[i].script);
        CHECK(!p->mpi_major && strstr(p->mpi_why, cases[i].word), "%s", p->mpi_why);
    }
    unlink(mpirun);
    const struct launch_found *f = looked();
    CHECK(f->err.code == ERR_NONE && !*f->paths.mpirun && *f->paths.bench,
          "removed: the bench is there all the same");
}

// With the rights of a rank: no privilege, no network but loopback.
static void test_rights(void)
{
    const struct launch_paths *p =
        told("#!/bin/sh\nnew=$(sed -n 's/^NoNewPrivs:[^0-9]*//p' /proc/self/status)\n"
             "capable=$(sed -n 's/^CapEff:[^0-9]*//p;s/^CapBnd:[^0-9]*//p' /proc/self/status)\n"
             "others=$(sed '1,2d' /proc/net/dev | grep -cv '^ *lo:')\n"
             "echo \"privileges $new others $others as $(id -u)\" $capable\n");
    char want[80];
    snprintf(want, sizeof want, "privileges 1 others 0 as %u",
             (unsigned)launch_look_found(look)->account.uid);
    CHECK(strstr(p->mpi_why, want), "%s", p->mpi_why);
}

// Whatever it forks is gone when the look has ended.
static void test_hanging(void)
{
    int64_t begin = clock_mono_ms();
    const struct launch_paths *p =
        told("#!/bin/sh\ntrap '' TERM HUP\nsetsid sleep 3600 &\nsleep 3600\n");
    CHECK(!p->mpi_major && strstr(p->mpi_why, "did not answer --version within 5 s"), "%s",
          p->mpi_why);
    CHECK(clock_mono_ms() - begin >= LAUNCH_ASK_MS, "it had its time");
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    CHECK_INT(proc_kill_below(0), 0, "nothing is left of it");
}

// Asked once, until the file is another, a minute has passed or there is doubt.
static void test_memory(void)
{
    char script[200];
    snprintf(script, sizeof script,
             "#!/bin/sh\necho x >>'%s/asked'\necho 'mpirun (Open MPI) 4.1.4'\n", dir);
    struct stat st = {0};
    char asked[100];
    dir_write(dir, "asked", "");
    snprintf(asked, sizeof asked, "%s/asked", dir);
    chmod(asked, 0666);
    told(script);
    looked();
    looked();
    CHECK(stat(asked, &st) == 0 && st.st_size == 2, "asked once");
    launch_look_doubt(look);
    CHECK(looked()->paths.mpi_major == 4 && stat(asked, &st) == 0 && st.st_size == 4,
          "asked again where there is doubt");
    told(script);
    CHECK(stat(asked, &st) == 0 && st.st_size == 6, "and when the file is another");
}

// A look that nobody can wait for holds nothing up, and its truth comes later.
static void test_waiting(void)
{
    struct err err;
    char gate[80], script[200];
    snprintf(gate, sizeof gate, "%s/gate", dir);
    snprintf(script, sizeof script, "#!/bin/sh\nread x <'%s'\necho 'mpirun (Open MPI) 5.0.7'\n",
             gate);
    CHECK(mkfifo(gate, 0600) == 0 && chmod(gate, 0666) == 0, "a gate");
    int fd = open(gate, O_RDWR | O_CLOEXEC); // waits for no reader
    write_mpirun(script);
    CHECK(launch_look_begin(look), "begun");
    CHECK(launch_look_begin(look), "one is enough");
    launch_look_wait(look, 1);
    const struct launch_found *f = launch_look_found(look);
    CHECK(!f->paths.mpi_major && strstr(f->paths.mpi_why, "in time"), "not yet: %s",
          f->paths.mpi_why);
    CHECK(!launch_look_begin(look), "and none can be begun meanwhile");
    CHECK(write(fd, "go\n", 3) == 3, "it may go on");
    loop_run(loop, &err);
    CHECK_INT(f->paths.mpi_major, 5, "it came");
    close(fd);
}

int main(void)
{
    struct err err;
    log_init(LOG_LVL_ERROR, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    dir_make(dir);
    chmod(dir, 0711);
    snprintf(mpirun, sizeof mpirun, "%s/mpirun", dir);
    setenv("NUMAPROBE_MPIRUN", mpirun, 1);
    setenv("NUMAPROBE_BENCH", "/bin/true", 1);
    loop = loop_new(&err);
    look = launch_look_new(loop, dir, "", done, NULL, &err);
    if (!look)
        return 1;
    if (possible()) {
        test_versions();
        test_others();
        test_rights();
        test_hanging();
        test_memory();
        test_waiting();
    } else {
        SKIP("no network namespace can be had here");
    }
    launch_look_free(look);
    loop_free(loop);
    dir_remove(dir);
    return tap_done();
}

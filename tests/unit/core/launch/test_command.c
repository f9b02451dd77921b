// SPDX-License-Identifier: Apache-2.0
#include "core/launch/choice.h"
#include "tests/unit/tap.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/launch/command.h"
#include "model/target.h"

static const struct launch_paths paths = {.mpirun = "/usr/bin/mpirun",
                                          .numactl = "/usr/bin/numactl",
                                          .bench = "/opt/numa_bench",
                                          .mpi_major = 4,
                                          .dir_bytes = -1,
                                          .tasks = -1};

static bool has_word(char **list, const char *word)
{
    for (; *list; list++)
        if (strcmp(*list, word) == 0)
            return true;
    return false;
}

static bool has_prefix(char **list, const char *prefix)
{
    for (; *list; list++)
        if (strncmp(*list, prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

static void make(struct launch *l, const struct launch_paths *p, bool as_root)
{
    struct err err = {0};
    struct plan_rank ranks[2] = {{.cpu = 1, .mem_node = 0}, {.cpu = 9, .mem_node = 3}};
    struct plan plan = {.n_ranks = 2, .ranks = ranks};
    struct spec s;
    spec_init(&s, BENCHMARK_LATENCY);
    if (launch_make(l, p, &plan, &s, "/run/x/1-ab", "ab", as_root, &err) < 0)
        abort();
}

static void test_words(void)
{
    struct launch l;
    CLEANUP_BUF struct buf line = BUF_INIT;
    make(&l, &paths, false);
    CHECK_STR(l.argv[0], "/usr/bin/mpirun", "mpirun first");
    launch_write_line(&l, &line);
    CHECK(strstr(buf_text(&line),
                 " -np 2 /opt/numa_bench latency --channel=/run/x/1-ab/records --nonce=ab "
                 "--deadline="),
          "one application context: %s", buf_text(&line));
    CHECK(!has_word(l.argv, ":") && has_word(l.argv, "--bind=1:0,9:3") &&
              has_word(l.argv, "--numactl=/usr/bin/numactl"),
          "of which each rank finds its place");
    const struct param_table *t = &benchmarks[BENCHMARK_LATENCY].params;
    for (int i = 0; i < t->n; i++) {
        char option[64];
        snprintf(option, sizeof option, "--%s=", t->params[i].name);
        for (char *p = option; *p; p++)
            *p = *p == '_' ? '-' : *p;
        CHECK(has_prefix(l.argv, option), "%s is there", option);
    }
    CHECK(has_word(l.argv, "btl_vader_backing_directory"), "shared memory is in our directory");
    CHECK(!has_word(l.envp, "OMPI_ALLOW_RUN_AS_ROOT=1"), "root is not meant");
    launch_fini(&l);
    CHECK(l.argv == NULL, "freed");
}

// Without MPI the bench starts its ranks itself.
static void test_processes(void)
{
    struct err err = {0};
    struct launch l;
    struct plan_rank ranks[2] = {{.cpu = 1, .mem_node = 0}, {.cpu = 9, .mem_node = -1}};
    struct plan plan = {.n_ranks = 2,
                        .ranks = ranks,
                        .processes = true,
                        .n_targets = 3,
                        .targets = {0, 1, 4},
                        .found_bytes = 96 << 20,
                        .load_cpus = "5"};
    struct spec s;
    spec_init(&s, BENCHMARK_MATRIX);
    CHECK_INT(launch_make(&l, &paths, &plan, &s, "/run/x/1-ab", "ab", false, &err), 0, "a launch");
    CHECK_STR(l.argv[0], "/opt/numa_bench", "the bench itself");
    CHECK(has_word(l.argv, "--np=2") && has_word(l.argv, "--bind=1:0,9:-1"),
          "its ranks and places");
    CHECK(has_word(l.argv, "--targets=0-1,4"), "the targets that the plan has found");
    CHECK(has_word(l.argv, "--found-cache=100663296"), "and the cache that a run has");
    CHECK(!has_word(l.argv, "-np"), "no mpirun");
    launch_fini(&l);
    plan.n_targets = 2;
    plan.targets[1] = ranks[0].mem_node = ranks[1].mem_node = target_interleaved(3, false);
    CHECK_INT(launch_make(&l, &paths, &plan, &s, "/run/x/1-ab", "ab", false, &err), 0, "a launch");
    CHECK(has_word(l.argv, "--targets=0+interleave:0-1") && has_word(l.argv, "--bind=1:-1,9:-1") &&
              has_word(l.argv, "--numa=interleave:0-1"),
          "interleaved memory, which binds no rank to a node");
    CHECK(!has_word(l.argv, "--oversubscribe"), "a CPU a rank");
    launch_fini(&l);
    s.oversubscribe = true;
    CHECK(launch_make(&l, &paths, &plan, &s, "/run/x/1-ab", "ab", false, &err) == 0 &&
              has_word(l.argv, "--oversubscribe"),
          "unless they may share one");
    launch_fini(&l);
}

// As in a container that refuses set_mempolicy: CPUs are bound, other nodes' memory is not
// promised.
static void test_denied_policies(void)
{
    struct launch_paths p = paths;
    struct launch l;
    struct err err = {0};
    struct spec s;
    struct plan_rank ranks[] = {{0, 0, 0}, {5, 1, -1}};
    struct plan plan = {.n_ranks = 2, .ranks = ranks};
    p.policies_denied = true;
    spec_init(&s, BENCHMARK_LATENCY);
    s.launcher = LAUNCHER_MPI;
    CHECK(launch_choose(&plan, &p, &s, &err) == 0 && !plan.processes && plan.n_notes == 1 &&
              strstr(plan.notes[0], "SYS_NICE"),
          "own memory needs no policy: %s", plan.notes[0]);
    CHECK_INT(launch_make(&l, &p, &plan, &s, "/run/x/1-ab", "ab", false, &err), 0, "a launch");
    CHECK(has_word(l.argv, "--bind=0:0,5:-1") && !has_prefix(l.argv, "--numactl"),
          "numactl would fail: the bench binds itself");
    launch_fini(&l);
    ranks[1].mem_node = 0;
    CHECK(launch_choose(&plan, &p, &s, &err) < 0 && err.code == ERR_UNAVAILABLE &&
              strcmp(err.member, "numa") == 0 &&
              strstr(err.text, "node 0 cannot be given to CPU 5"),
          "%s", err.text);
    ranks[1].mem_node = 1;
    plan.n_targets = 1; // node 0, of both ranks
    CHECK(launch_choose(&plan, &p, &s, &err) < 0 && strcmp(err.member, "targets") == 0, "%s",
          err.text);
}

static void test_environment(void)
{
    struct launch l;
    setenv("LD_PRELOAD_X", "evil", 1);
    setenv("OMPI_MCA_plm", "rsh", 1);
    setenv("SLURM_JOB_ID", "5", 1);
    make(&l, &paths, true);
    CHECK(has_word(l.envp, "NUMAPROBE_NONCE=ab") && has_word(l.envp, "HOME=/run/x/1-ab") &&
              has_word(l.envp, "TMPDIR=/run/x/1-ab"),
          "ours");
    CHECK(!has_prefix(l.envp, "LD_") && !has_prefix(l.envp, "OMPI_MCA_plm=") &&
              !has_prefix(l.envp, "SLURM"),
          "nothing of the daemon's");
    CHECK(has_word(l.envp, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"), "root is meant");
    CHECK(has_word(l.envp, "HWLOC_PLUGINS_PATH=") && has_prefix(l.envp, "HWLOC_COMPONENTS=-gl,"),
          "no plugin of hwloc looks for displays");
    CHECK(has_word(l.envp, "UCX_VFS_ENABLE=n"), "and UCX for no socket");
    launch_fini(&l);
}

static void test_variants(void)
{
    struct launch l;
    struct launch_paths p = paths;
    p.mpi_major = 5;
    make(&l, &p, false);
    CHECK(has_word(l.argv, "btl_sm_backing_directory") && !has_word(l.argv, "--oversubscribe"),
          "names of Open MPI 5");
    CHECK(!has_word(l.argv, "oob_tcp_if_include"),
          "whose launcher does not take loopback where there are other interfaces");
    launch_fini(&l);
    struct launch odd = {.argv = (char *[]){strdup("a b"), strdup("it's"), strdup(""), NULL}};
    CLEANUP_BUF struct buf line = BUF_INIT;
    launch_write_line(&odd, &line);
    CHECK_STR(buf_text(&line), "'a b' 'it'\\''s' ''", "quoted for a shell");
    for (int i = 0; i < 3; i++)
        free(odd.argv[i]);
}

// The words that a quick run starts numa_bench with are those that its own check accepts.
static void test_quick_copies(void)
{
    struct err err = {0};
    struct launch l;
    struct plan_rank ranks[2] = {{.cpu = 1, .mem_node = 0}, {.cpu = 9, .mem_node = 3}};
    struct plan plan = {.n_ranks = 2, .ranks = ranks};
    struct spec s;
    spec_init(&s, BENCHMARK_BANDWIDTH);
    spec_quick(&s);
    s.sweep = SWEEP_MEMCPY;
    CHECK(s.kernel && spec_check(&s, &err) == 0 &&
              launch_make(&l, &paths, &plan, &s, "/run/x/1-ab", "ab", false, &err) == 0,
          "quick copies, whose kernel is set: %s", err.text);
    CHECK(has_word(l.argv, "--sweep=memcpy") && has_word(l.argv, "--kernel=all"),
          "copies have kernels of their own");
    launch_fini(&l);
}

static void test_find(void)
{
    struct err err = {0};
    struct launch_paths p = {0};
    setenv("NUMAPROBE_BENCH", "/nonexistent/numa_bench", 1);
    int rc = launch_find_bench(&p, &err);
    CHECK(rc < 0 && err.code == ERR_UNAVAILABLE, "what is missing is named: %s", err.text);
    setenv("NUMAPROBE_BENCH", "/bin/true", 1);
    setenv("NUMAPROBE_MPIRUN", "/bin/true", 1);
    CHECK_INT(launch_find_bench(&p, &err), 0, "a bench");
    CHECK_STR(p.bench, "/bin/true", "by the environment");
    launch_find_mpi(&p);
    CHECK(strcmp(p.mpirun, "/bin/true") == 0 && !p.mpi_major, "an mpirun that nobody has asked");
    setenv("PATH", "/nonexistent", 1);
    launch_find_mpi(&p);
    CHECK(!*p.numactl, "no numactl");
}

int main(void)
{
    test_words();
    test_processes();
    test_denied_policies();
    test_environment();
    test_variants();
    test_quick_copies();
    test_find();
    return tap_done();
}

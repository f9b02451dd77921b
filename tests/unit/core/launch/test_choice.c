// SPDX-License-Identifier: Apache-2.0
// Who starts the ranks, by what a look has found.
#include "core/launch/choice.h"
#include "tests/unit/tap.h"

#include "core/launch/command.h"

static struct plan_rank places[SPEC_RANKS_MAX];

// A machine where all is well.
static const struct launch_paths good = {
    .mpirun = "/m", .numactl = "/n", .bench = "/b", .mpi_major = 5, .dir_bytes = -1, .tasks = -1};

static int choose(struct plan *plan, const struct launch_paths *p, int launcher, int benchmark,
                  int ranks, struct err *err)
{
    struct spec s;
    spec_init(&s, (enum benchmark_id)benchmark);
    s.launcher = launcher;
    *plan = (struct plan){.n_ranks = ranks, .ranks = places};
    *err = (struct err){0};
    return launch_choose(plan, p, &s, err);
}

static void test_well(void)
{
    struct plan plan;
    struct err err;
    CHECK(choose(&plan, &good, LAUNCHER_AUTO, BENCHMARK_LATENCY, 2, &err) == 0 && !plan.processes &&
              !*plan.launcher_why && !plan.n_notes,
          "auto is MPI");
    CHECK(choose(&plan, &good, LAUNCHER_MPI, BENCHMARK_LATENCY, 2, &err) == 0 && !plan.processes,
          "so is mpi");
    CHECK(choose(&plan, &good, LAUNCHER_PROCESSES, BENCHMARK_LATENCY, 2, &err) == 0 &&
              plan.processes && !*plan.launcher_why,
          "processes were requested: no reason is told");
}

// A fault of `bad` that keeps mpirun from starting n ranks: auto does without, who needs MPI is
// refused, and both are told the same.
static void check_fault(const struct launch_paths *bad, int n, const char *word)
{
    struct plan plan;
    struct err err;
    CHECK(choose(&plan, bad, LAUNCHER_AUTO, BENCHMARK_LATENCY, n, &err) == 0 && plan.processes &&
              strstr(plan.launcher_why, word) && plan.n_notes == 1 &&
              strstr(plan.notes[0], "without MPI"),
          "auto: %s", plan.launcher_why);
    CHECK(choose(&plan, bad, LAUNCHER_MPI, BENCHMARK_LATENCY, n, &err) < 0 &&
              err.code == ERR_UNAVAILABLE && strcmp(err.member, "launcher") == 0 &&
              strstr(err.text, word) && strstr(err.text, "launcher=processes"),
          "mpi: %s", err.text);
    CHECK(choose(&plan, bad, LAUNCHER_AUTO, BENCHMARK_PINGPONG, n, &err) < 0 &&
              err.code == ERR_UNAVAILABLE && strstr(err.text, word) &&
              !strstr(err.text, "launcher=processes"),
          "pingpong: %s", err.text);
    CHECK_INT(choose(&plan, bad, LAUNCHER_PROCESSES, BENCHMARK_LATENCY, n, &err), 0,
              "processes need none of it");
}

static void test_faults(void)
{
    struct launch_paths p = good;
    *p.mpirun = '\0';
    check_fault(&p, 2, "openmpi-bin");
    p = good;
    *p.numactl = '\0';
    check_fault(&p, 2, "package numactl");
    p = good;
    p.mpi_major = 0;
    snprintf(p.mpi_why, sizeof p.mpi_why, "/m is not Open MPI's");
    check_fault(&p, 2, "/m is not Open MPI's");
    p = good;
    p.dir_bytes = 6 << 20;
    check_fault(&p, 2, "6 MiB free");
    p = good;
    p.tasks = 500;
    check_fault(&p, 256, "TasksMax");
}

// What is just enough is enough.
static void test_arithmetic(void)
{
    struct plan plan;
    struct err err;
    struct launch_paths p = good;
    p.dir_bytes = 8ll * LAUNCH_DIR_BYTES_PER_RANK + LAUNCH_DIR_BYTES;
    p.tasks = 8 * LAUNCH_TASKS_PER_MPI_RANK + LAUNCH_TASKS;
    CHECK_INT(choose(&plan, &p, LAUNCHER_MPI, BENCHMARK_LATENCY, 8, &err), 0, "8 ranks fit");
    CHECK(choose(&plan, &p, LAUNCHER_MPI, BENCHMARK_LATENCY, 9, &err) < 0, "9 do not: %s",
          err.text);
    p = good;
    p.tasks = 4096 - 8;
    CHECK_INT(choose(&plan, &p, LAUNCHER_MPI, BENCHMARK_LATENCY, SPEC_RANKS_MAX, &err), 0,
              "the unit's TasksMax is for as many ranks as can be");
    p.tasks = 100;
    CHECK(choose(&plan, &p, LAUNCHER_AUTO, BENCHMARK_LATENCY, 100, &err) < 0 &&
              err.code == ERR_UNAVAILABLE && strcmp(err.member, "ranks") == 0,
          "nor are 100 for 100 processes: %s", err.text);
}

int main(void)
{
    test_well();
    test_faults();
    test_arithmetic();
    return tap_done();
}

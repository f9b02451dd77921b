// SPDX-License-Identifier: Apache-2.0
// The order of events: options, a deadline, the channel of records, the binding of the rank,
// the launcher (comm_open), the session with its benchmark, and the end. Rank 0 reports an
// error of any rank before all leave.
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/written.h"
#include "bench/benchmarks/table.h"
#include "bench/ranks/comm.h"
#include "bench/ranks/life.h"
#include "bench/session/bind.h"
#include "bench/session/options.h"
#include "bench/session/output.h"
#include "bench/session/print.h"
#include "bench/session/session.h"

// In a sanitizer build: are leaks not to be looked for? Open MPI forgets memory, unloads the
// plugins that held more, and keeps threads of its own that make the checker itself crash. So leaks
// are looked for in ranks that run without MPI, which run all of the same code but the module; the
// other checks hold in all.
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return comm_uses_mpi();
}

// The same for races and lock orders: those of Open MPI, libnuma and their threads, which the
// checker cannot see into, are theirs. What our own threads do to each other is all watched.
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "ignore_noninstrumented_modules=1";
}

// The end record of a deadline and the line by hand, made beforehand: a signal handler cannot.
static void arm_deadline(const struct options *o, int rank, int fd)
{
    static char words[512], by_hand[120];
    struct buf line CLEANUP_BUF = BUF_INIT;
    struct record r = {.kind = RECORD_END, .end = {.code = ERR_TIMEOUT}};
    snprintf(r.end.text, sizeof r.end.text,
             "not ready after %lld s: raise timeout_s or measure less", (long long)o->deadline_s);
    record_write(&r, &line);
    snprintf(words, sizeof words, "%s", buf_text(&line));
    snprintf(by_hand, sizeof by_hand,
             "numa_bench: not ready after %lld s: raise --deadline or measure less\n",
             (long long)o->deadline_s);
    // The launcher kills all when the first one ends: let that be rank 0, which has the last word.
    life_deadline(o->deadline_s ? o->deadline_s + (rank != 0) : 0, fd, words,
                  *o->channel ? "numa_bench: the time limit ended it\n" : by_hand);
}

// Rank 0 speaks first, then all leave: the launcher kills the others as soon as one ends with a
// failure.
static int report(struct emit *e, int rank, const struct err *err)
{
    if (rank == 0)
        emit_failure(e, err);
    // What the planner of a daemon refuses as a value is a wrong option here.
    return err->code == ERR_USAGE || err->code == ERR_INVALID ? 2 : 1;
}

// Each rank says what is wrong: the ranks do not know each other yet, or this is the only one. A
// launcher ends the others.
static int fail_alone(const struct options *o, struct emit *e, int rank, const struct err *err)
{
    if (rank != 0)
        print_failure(o, err, stderr);
    return report(e, rank, err);
}

static int main_measure(const struct options *o, int rank, struct emit *e)
{
    struct comm comm;
    struct err err = {0};
    bool messages = benchmarks[o->spec.benchmark].needs_mpi; // which populates no arena by threads
    const struct comm_start start = {(int)o->ranks, o->bind, o->oversubscribe, messages};
    if (comm_open(&comm, &start, &err) < 0)
        return comm.alone ? fail_alone(o, e, rank, &err)
                          : report(e, start.ranks ? comm.rank : rank, &err);
    int status = 0;
    if (session_run(&comm, o, comm.rank == 0 ? e : NULL, benchmark_runs[o->spec.benchmark], &err) <
        0)
        status = report(e, comm.rank, &err);
    comm_close(&comm); // returns when all have come
    return status;
}

// Every rank read the same words and came to the same verdict.
static int main_refuse(const struct options *o, struct emit *e, int rank, const struct err *err)
{
    struct comm comm;
    struct err ignored = {0};
    int status = report(e, rank, err);
    const struct comm_start start = {0};
    if (comm_open(&comm, &start, &ignored) == 0)
        comm_close(&comm);
    else if (comm.alone && rank != 0)
        print_failure(o, err, stderr);
    return status;
}

static int main_answer(const struct options *o, int rank)
{
    if (rank != 0)
        return 0;
    if (o->version)
        printf("numa_bench " NUMAPROBE_VERSION " (method %s)\n", spec_method(&o->spec));
    else
        options_help(o, stdout);
    if (all_written(stdout))
        return 0;
    fputs("numa_bench: cannot write to the standard output\n", stderr);
    return 1;
}

int main(int argc, char **argv)
{
    struct options options;
    struct emit emit CLEANUP(emit_fini) = {.fd = -1};
    struct err err = {0}, channel_err = {0};
    int rank = comm_rank_hint();
    life_begin();
    int parsed = options_parse(&options, argc, argv, &err);
    if (parsed == 0 && (options.help || options.version))
        return main_answer(&options, rank);
    arm_deadline(&options, rank, -1);
    if (rank == 0 && emit_open(&emit, &options, &channel_err) < 0)
        return report(&emit, rank, &channel_err);
    arm_deadline(&options, rank, emit.fd);
    if (parsed == 0 && bind_rank_of_mpi(&options, &err) < 0)
        return fail_alone(&options, &emit, rank, &err);
    return parsed < 0 ? main_refuse(&options, &emit, rank, &err)
                      : main_measure(&options, rank, &emit);
}

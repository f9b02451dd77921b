// SPDX-License-Identifier: Apache-2.0
// A body of POST /v1/runs, on a machine of two sockets: from JSON to the words that mpirun would
// get. What is accepted reads back as the same, and no word of the command line is of a stranger's
// making.
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "core/launch/choice.h"
#include "core/launch/command.h"
#include "core/launch/planner.h"
#include "core/node/hwloc.h"
#include "model/spec.h"
#include "tests/fuzz/fuzz.h"

static struct topology machine;

static void forget_machine(void)
{
    topology_fini(&machine);
}

void fuzz_request_begin(const char *dir)
{
    char *xml = NULL;
    (void)dir;
    setenv("HWLOC_SYNTHETIC", "pack:2 [numa(memory=68719476736)] l3:1(size=33554432) core:4 pu:2",
           1);
    fuzz_hold(probe_topology(&machine, &xml, NULL) == 0);
    free(xml);
    unsetenv("HWLOC_SYNTHETIC");
    atexit(forget_machine);
}

static void write_spec(const struct spec *s, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    spec_write_json(s, &w, NULL);
    fuzz_hold(buf_ok(out));
}

static void check_same(const struct spec *s)
{
    CLEANUP_BUF struct buf first = BUF_INIT, second = BUF_INIT;
    static struct spec again;
    write_spec(s, &first);
    CLEANUP_JSON struct json *j = json_parse(buf_text(&first), first.len, NULL);
    fuzz_hold(j && spec_from_json(&again, j, NULL, NULL) == 0);
    write_spec(&again, &second);
    fuzz_hold(strcmp(buf_text(&first), buf_text(&second)) == 0);
}

// Letters, digits and the punctuation of our options: nothing that a shell, a path or an option
// could be made of. "^" and "%" are in settings of Open MPI.
static void check_words(char *const *argv)
{
    for (; *argv; argv++)
        fuzz_hold(!(*argv)[strspn(*argv, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789-_=.,:/+^")]);
}

static void check_launch(const struct spec *s)
{
    static const struct launch_paths paths = {.mpirun = "/usr/bin/mpirun",
                                              .numactl = "/usr/bin/numactl",
                                              .bench = "/usr/bin/numa_bench",
                                              .mpi_major = 4,
                                              .dir_bytes = -1,
                                              .tasks = -1};
    struct plan plan CLEANUP(plan_fini) = {0};
    struct launch launch CLEANUP(launch_fini) = {0};
    struct err err = {0};
    if (plan_make(&plan, s, &machine, &err) < 0) {
        fuzz_hold(err.code != ERR_NONE && *err.text);
        return;
    }
    fuzz_hold(plan.n_ranks > 0 && plan.n_ranks <= SPEC_RANKS_MAX);
    if (launch_choose(&plan, &paths, s, &err) < 0)
        return;
    fuzz_hold(launch_make(&launch, &paths, &plan, s, "/run/numaprobe/1", "nonce", false, &err) ==
              0);
    check_words(launch.argv);
}

void fuzz_request(const uint8_t *data, size_t size)
{
    static struct spec spec;
    static const char *const others[] = {"dry_run", NULL};
    struct err err = {0};
    char *text = fuzz_text(data, size);
    fuzz_accepted = false;
    CLEANUP_JSON struct json *j = json_parse(text, size, &err);
    free(text);
    if (!j) {
        fuzz_hold(err.code == ERR_BAD_REQUEST && *err.text);
        return;
    }
    if (spec_from_json(&spec, j, others, &err) < 0) {
        fuzz_hold(err.code != ERR_NONE && *err.text);
        return;
    }
    fuzz_accepted = true;
    fuzz_hold(spec_check(&spec, NULL) == 0);
    check_same(&spec);
    check_launch(&spec);
}

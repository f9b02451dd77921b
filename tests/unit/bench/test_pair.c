// SPDX-License-Identifier: Apache-2.0
// Which pairs are measured, and memory that two processes share.
#include "bench/session/pairs.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bench/memory/shared_memory.h"
#include "tests/unit/tap.h"

enum { RANKS = 6 };

// Two sockets: 0 and 1 are siblings, 2 has their cache, 3 their node, 4 their socket, 5 nothing.
static const struct cpu_place places[RANKS] = {{0, 0, 0, 0}, {0, 0, 0, 0}, {2, 0, 0, 0},
                                               {3, 3, 0, 0}, {4, 4, 1, 0}, {5, 5, 2, 1}};

static void classes(void)
{
    for (int i = 1; i < RANKS; i++)
        CHECK(pair_class_of(&places[0], &places[i]) == (enum pair_class)(i - 1), "0-%d: %s", i,
              pair_class_names[i - 1]);
    const struct cpu_place unknown = {-1, -1, -1, -1};
    CHECK(pair_class_of(&unknown, &unknown) == PAIR_REMOTE, "what is not known is not shared");
}

static void lists(struct session *s)
{
    struct err err = {0};
    int n = 0;
    CLEANUP_MEM int(*classes_of)[2] = NULL;
    CLEANUP_MEM int(*given)[2] = NULL;
    CLEANUP_MEM int(*none)[2] = NULL;
    CHECK(pair_list(s, "classes", &classes_of, &n, &err) == 0 && n == PAIR_CLASSES &&
              classes_of[0][1] == 1 && classes_of[1][1] == 2 && classes_of[4][1] == 5,
          "one pair of each class");
    CHECK(pair_list(s, "5-1,0-2", &given, &n, &err) == 0 && n == 2 && given[0][0] == 1 &&
              given[0][1] == 5,
          "those given");
    CHECK(pair_list(s, "0-2,2-0", &none, &n, &err) < 0, "a pair twice: %s", err.text);
    struct spec spec;
    spec_init(&spec, BENCHMARK_C2C);
    s->spec = &spec;
    CHECK(pairs_possible(s, &err) == 0, "two ranks are a pair");
    snprintf(spec.pairs, sizeof spec.pairs, "0-6");
    CHECK(pairs_possible(s, &err) < 0, "a rank that is not there: %s", err.text);
    snprintf(spec.pairs, sizeof spec.pairs, "0-5");
    CHECK(pairs_possible(s, &err) == 0, "the last rank that is there");
    s->comm->size = 1;
    CHECK(pairs_possible(s, &err) < 0, "one rank: %s", err.text);
    s->spec = NULL;
}

// Of the mapping that begins at `base`: does the kernel have the flag?
static bool has_flag(const void *base, const char *flag)
{
    char line[512], head[24];
    bool inside = false, found = false;
    FILE *f = fopen("/proc/self/smaps", "re");
    snprintf(head, sizeof head, "%lx-", (unsigned long)(uintptr_t)base);
    while (f && fgets(line, sizeof line, f)) {
        inside = strncmp(line, head, strlen(head)) == 0 || (inside && !strchr(line, '-'));
        found |= inside && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, flag);
    }
    if (f)
        fclose(f);
    return found;
}

static void shared(void)
{
    struct share ours CLEANUP(share_fini) = {.fd = -1};
    struct err err = {0};
    int status = 1;
    CHECK(share_make(&ours, 8192, &err) == 0, "memory to share %s", err.text);
    if (!getenv("NUMAPROBE_EMULATED"))
        CHECK(has_flag(ours.base, " sh") && has_flag(ours.base, " nh"),
              "shared, and never in huge pages");
    else
        SKIP("user-mode emulation does not show the flags of memory");
    fflush(stdout); // or the child would say it again
    pid_t pid = fork();
    if (pid == 0) {
        struct share theirs;
        if (share_open(&theirs, getppid(), ours.fd, 8192, &err) < 0)
            _exit(2);
        theirs.base[5000] = 42;
        share_fini(&theirs);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    CHECK(status == 0 && ours.base[5000] == 42, "another process writes into it");
    struct share theirs;
    CHECK(share_open(&theirs, getpid(), 9999, 8192, &err) < 0, "what is not there: %s", err.text);
}

int main(void)
{
    struct board *board = calloc(1, board_bytes(RANKS));
    struct comm comm = {.size = RANKS, .board = board};
    struct session s = {.comm = &comm, .board = board};
    if (!board)
        return 1;
    for (int i = 0; i < RANKS; i++)
        board->slot[i].cpu_place = places[i];
    classes();
    lists(&s);
    shared();
    free(board);
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// Expanding and folding 10,000 node names: those of one range, and names that cannot be folded.
// Sets of 32,768 names, as `where` of a request. The time of each is a median of 41. Beside it, the
// commands of ClusterShell, if they are installed: a median of 5, without the 0.1 s or so that
// Python takes to start (their time for one name).
//
//   nodesets [NAMES=10000]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/stats/stats.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "model/nodeset.h"

enum { OURS = 41, THEIRS = 5 };

static double ms_since(uint64_t begin)
{
    return (double)(clock_mono_ns() - begin) / 1e6;
}

static double median(double *v, int n)
{
    stats_sort(v, n);
    return stats_quantile(v, n, 0.5);
}

static void ours(const char *what, const char *text)
{
    double expand[OURS], fold[OURS];
    int n = 0;
    size_t bytes = 0;
    for (int i = 0; i < OURS; i++) {
        CLEANUP_NODESET struct nodeset s = {0};
        CLEANUP_BUF struct buf out = BUF_INIT;
        struct err err;
        uint64_t begin = clock_mono_ns();
        if (nodeset_parse(&s, text, NULL, &err) < 0) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        expand[i] = ms_since(begin);
        begin = clock_mono_ns();
        nodeset_fold(&s, &out);
        fold[i] = ms_since(begin);
        n = s.n;
        bytes = out.len;
    }
    double e = median(expand, OURS), f = median(fold, OURS);
    printf("%-22s %6d names: expand %.2f ms, fold %.2f ms (%zu bytes), together %.2f ms\n", what, n,
           e, f, bytes, e + f);
}

// As `where` of a request: in no order, and then every node of a fleet is looked up.
static void members(const char *what, const char *text, const struct nodeset *fleet)
{
    double parse[OURS], look[OURS];
    int n = 0, found = 0;
    for (int i = 0; i < OURS; i++) {
        CLEANUP_NODESET struct nodeset s = {0};
        struct err err;
        uint64_t begin = clock_mono_ns();
        if (nodeset_parse_members(&s, text, NODESET_MEMBERS_MAX, &err) < 0) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        parse[i] = ms_since(begin);
        begin = clock_mono_ns();
        found = 0;
        for (int k = 0; k < fleet->n; k++)
            found += nodeset_has(&s, fleet->names[k]);
        look[i] = ms_since(begin);
        n = s.n;
    }
    printf("%-22s %6d names: parse %.2f ms, look up %d nodes %.2f ms (%d found)\n", what, n,
           median(parse, OURS), fleet->n, median(look, OURS), found);
}

static void all_members(void)
{
    enum { LONG = 58 };
    CLEANUP_NODESET struct nodeset fleet = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct err err;
    CLEANUP_NODESET struct nodeset large = {0};
    if (nodeset_parse(&fleet, "n[00001-10000]", NULL, &err) < 0)
        exit(1);
    members("where: one range", "n[00001-32768]", &fleet);
    members("where: both of two", "n[00001-16384]^n[00002-16385]", &fleet);
    buf_fmt(&text, "%0*d[00001-65535]", LONG, 0);
    if (nodeset_parse(&large, buf_text(&text), NULL, &err) < 0)
        exit(1);
    buf_reset(&text);
    buf_fmt(&text, "%0*d[00001-32768]", LONG, 0);
    members("where: long names", buf_text(&text), &large);
    buf_reset(&text);
    for (int i = 0; i < 15; i++)
        buf_str(&text, "n[1,0]");
    members("where: 15 brackets", buf_text(&text), &fleet);
}

static double shell(const char *command)
{
    uint64_t begin = clock_mono_ns();
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    return waitpid(pid, &status, 0) == pid && status == 0 ? ms_since(begin) : -1;
}

static double theirs(const char *range)
{
    char command[200];
    double took[THEIRS];
    snprintf(command, sizeof command,
             "command -v nodeset >/dev/null && nodeset -e '%s' | nodeset -f >/dev/null", range);
    for (int i = 0; i < THEIRS; i++)
        if ((took[i] = shell(command)) < 0)
            return -1;
    return median(took, THEIRS);
}

int main(int argc, char **argv)
{
    uint64_t n = 10000;
    char range[64];
    CLEANUP_BUF struct buf odd = BUF_INIT;
    if (argc > 1 && (!str_to_u64(argv[1], &n) || n < 1 || n > NODESET_NAMES_MAX))
        return 2;
    snprintf(range, sizeof range, "n[00001-%05d]", (int)n);
    ours("one range", range);
    // a text has 64 KiB, so these are made of fewer ranges: r1n7, r2n19, ...
    for (uint64_t i = 0; i < n && odd.len + 16 < NODESET_TEXT_MAX; i++)
        buf_fmt(&odd, "%sr%dn%d", i ? "," : "", (int)i, (int)(i * 7919 % 65537));
    ours("cannot be folded", buf_text(&odd));
    all_members();
    double all = theirs(range), start = theirs("n1");
    if (all < 0 || start < 0)
        printf("nodeset of ClusterShell is not installed\n");
    else
        printf("nodeset -e | nodeset -f %6d names: %.0f ms, %.0f ms without its start\n", (int)n,
               all, all - start);
    return 0;
}

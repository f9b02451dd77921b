// SPDX-License-Identifier: Apache-2.0
// The same steps as the script of fleet/campaigns/script.h, but no shell reads them.
#include "fleet/campaigns/submit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/written.h"
#include "nodes/program.h"

enum { SUBMIT_MS = 60 * 1000, PRINTED_MOST = 4096 }; // of one program
static const struct program_limits submit_limits = {SUBMIT_MS, PRINTED_MOST};

static int run_scontrol(const char *action, const char *a, const char *b, struct err *err)
{
    CLEANUP_BUF struct buf printed = BUF_INIT;
    const char *const argv[] = {"scontrol", action, a, b, NULL};
    return program_read(argv, &submit_limits, &printed, err);
}

// A task per node: the array is held until each task has its node.
static int place_tasks(const char *job, char *nodes, struct err *err)
{
    int task = 0;
    for (char *node; (node = strsep(&nodes, " "));) {
        char of[64], on[128];
        snprintf(of, sizeof of, "JobId=%.20s_%d", job, ++task);
        snprintf(on, sizeof on, "ReqNodeList=%.100s", node);
        if (run_scontrol("update", of, on, err) < 0)
            return -1;
    }
    return run_scontrol("release", job, NULL, err);
}

static int submit_array(char *const words[], const char *nodes, const char *body, struct buf *job,
                        struct err *err)
{
    CLEANUP_BUF struct buf array = BUF_INIT, minutes = BUF_INIT, name = BUF_INIT, wrap = BUF_INIT;
    int n = 1;
    for (const char *c = nodes; *c; c++)
        n += *c == ' ';
    buf_fmt(&name, "--job-name=numaprobe-%s", words[0]);
    buf_fmt(&array, "--array=1-%d%%%s", n, words[1]);
    buf_fmt(&minutes, "--time=%s", words[2]);
    buf_str(&wrap, "--wrap=");
    buf_str(&wrap, body);
    const char *const argv[] = {"sbatch",
                                "--parsable",
                                "--hold",
                                "--nodes=1",
                                "--exclusive",
                                "--output=/dev/null",
                                buf_text(&array),
                                buf_text(&minutes),
                                buf_text(&name),
                                buf_text(&wrap),
                                NULL};
    if (program_read(argv, &submit_limits, job, err) < 0)
        return -1;
    size_t digits = strspn(buf_text(job), "0123456789");
    if (!digits || !strchr(";\n", job->data[digits]))
        return err_set(err, ERR_INVALID, "", "sbatch printed no number of a job");
    job->data[job->len = digits] = '\0';
    return 0;
}

static int submit_job(char *const words[], char *nodes, const char *body, struct err *err)
{
    CLEANUP_BUF struct buf job = BUF_INIT, printed = BUF_INIT;
    if (submit_array(words, nodes, body, &job, err) < 0)
        return -1;
    if (place_tasks(buf_text(&job), nodes, err) == 0)
        return printf("%s\n", buf_text(&job)) < 0;
    const char *const argv[] = {"scancel", buf_text(&job), NULL};
    struct err ignored;
    program_read(argv, &submit_limits, &printed, &ignored);
    return -1;
}

int submit_main(int argc, char **argv)
{
    enum { WORDS = 5 };
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct err err = {0};
    char block[16384];
    if (argc != WORDS)
        return 2;
    for (size_t n; (n = fread(block, 1, sizeof block, stdin)) > 0;)
        buf_add(&text, block, n);
    char *body = text.len && buf_ok(&text) ? strchr(text.data, '\n') : NULL;
    if (!body)
        return 2;
    *body++ = '\0';
    if (submit_job(argv + 2, text.data, body, &err) < 0) {
        printf("!%s\n", err.text);
        return 1;
    }
    return !all_written(stdout);
}

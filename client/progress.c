// SPDX-License-Identifier: Apache-2.0
// A line is drawn again in place on a terminal. Elsewhere one line per phase is printed, so
// that a log stays short.
#include "client/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/print.h"

enum { BAR = 30 };

void progress_line(const char *text)
{
    CLEANUP_BUF struct buf part = BUF_INIT;
    fprintf(stderr, "\r%s\033[K", print_cut_to(text, config_columns_of(STDERR_FILENO) - 1, &part));
    fflush(stderr);
}

static void draw(struct progress_bar *p, const char *phase, double share, int64_t eta_ms)
{
    char bar[BAR + 1], left[40] = "";
    int full = (int)(share * BAR);
    for (int i = 0; i < BAR; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR] = '\0';
    if (eta_ms >= 0)
        snprintf(left, sizeof left, ", %lld s left", (long long)(eta_ms + 999) / 1000);
    CLEANUP_BUF struct buf line = BUF_INIT;
    buf_fmt(&line, "[%s] %3.0f %%  %s%s", bar, share * 100, phase, left);
    progress_line(buf_text(&line));
    p->drawn = true;
}

// What the time limit will leave out is of use while the run can be canceled.
static void progress_warn(struct progress_bar *p, const struct json *run)
{
    const struct json *list = json_get(run, "conditions");
    for (const struct json *c = json_first(list); c && !p->warned; c = json_next(c)) {
        CLEANUP_BUF struct buf text = BUF_INIT;
        if (strcmp(json_get_text(c, "kind", ""), "time_limit") != 0)
            continue;
        buf_plain(&text, json_get_text(c, "text", ""));
        progress_clear(p);
        fprintf(stderr, "warning: %s\n", buf_text(&text));
        p->warned = true;
    }
}

void progress_show(struct progress_bar *p, const struct json *run)
{
    progress_warn(p, run);
    const struct json *now = json_get(run, "progress");
    CLEANUP_BUF struct buf phase = BUF_INIT;
    buf_plain(&phase, json_get_text(now, "phase", json_get_text(run, "state", "?")));
    const char *waits = json_get_text(json_get(run, "waiting"), "text", NULL);
    if (waits) {
        bool ends = json_get_text(json_get(run, "waiting"), "until", NULL);
        buf_str(&phase, ends ? ", waiting for the node: " : ", waiting: ");
        buf_plain(&phase, waits);
    }
    double total = json_get_number(now, "total", 0), done = json_get_number(now, "done", 0);
    double share = total > 0 && done >= 0 && done <= total ? done / total : 0;
    if (p->cli->err_terminal)
        draw(p, buf_text(&phase), share, json_get_i64(now, "eta_ms", -1));
    else if (strncmp(p->phase, buf_text(&phase), sizeof p->phase - 1) != 0)
        fprintf(stderr, "%s\n", buf_text(&phase));
    snprintf(p->phase, sizeof p->phase, "%s", buf_text(&phase));
}

void progress_clear(struct progress_bar *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}

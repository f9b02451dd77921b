// SPDX-License-Identifier: Apache-2.0
// An event is formatted into a buffer of fixed size and written at once. A log that is not read
// must not stop the daemon: the line is dropped then.
#include "base/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

const char *const log_level_names[] = {"error", "warn", "info", "debug", NULL};
static const enum log_level levels[] = {LOG_LVL_ERROR, LOG_LVL_WARN, LOG_LVL_INFO, LOG_LVL_DEBUG};

enum log_level log_level_of(int index)
{
    return levels[index];
}

static enum log_level threshold = LOG_LVL_INFO;
static int for_journal;

void log_init(enum log_level most, int journal)
{
    threshold = most;
    for_journal = journal;
}

bool log_wants(enum log_level level)
{
    return level <= threshold;
}

static const char *level_name(enum log_level level)
{
    return level <= LOG_LVL_ERROR  ? "error"
           : level == LOG_LVL_WARN ? "warn"
           : level == LOG_LVL_INFO ? "info"
                                   : "debug";
}

// The reader of the log may stop reading (a pager, a journal in trouble): the daemon continues. A
// pipe that polls writable has room for a line.
static bool can_write(void)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&p, 1, 0) != 0;
}

// A line is written with one write(2) so that lines of two processes never mix.
static void emit(enum log_level level, const char *event, const char *text)
{
    char line[1024];
    char when[32];
    clock_rfc3339(clock_wall_ms(), when);
    int head = for_journal
                   ? snprintf(line, sizeof line, "<%d>event=%s ", (int)level, event)
                   : snprintf(line, sizeof line, "%s %s event=%s ", when, level_name(level), event);
    size_t used = head > 0 ? (size_t)head : 0, n = strnlen(text, sizeof line - 2 - used);
    memcpy(line + used, text, n);
    used += n;
    line[used++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, used);
    (void)ignored;
}

void log_event(enum log_level level, const char *event, const char *fmt, ...)
{
    static unsigned lost;
    char text[900];
    if (!log_wants(level))
        return;
    if (!can_write()) {
        lost++;
        return;
    }
    if (lost) {
        snprintf(text, sizeof text, "lines=%u text=\"the reader was too slow\"", lost);
        lost = 0;
        emit(LOG_LVL_WARN, "log.lost", text);
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    utf8_plain(text);
    emit(level, event, text);
}

void log_error(const char *event, const struct err *err)
{
    log_event(LOG_LVL_ERROR, event, "code=%s member=%s text=\"%s\"", err_info(err->code)->slug,
              err->member, log_quote(err->text).text);
}

struct log_quoted log_quote(const char *text)
{
    struct log_quoted q = {0};
    for (size_t n = 0; *text && n < sizeof q.text - 2; text++) {
        if (*text == '"' || *text == '\\')
            q.text[n++] = '\\';
        q.text[n++] = *text;
    }
    return q;
}

bool log_budget_take(struct log_budget *b, int burst, int every_ms, int64_t now_ms)
{
    if (b->full_ms < now_ms)
        b->full_ms = now_ms;
    if (b->full_ms - now_ms > (int64_t)(burst - 1) * every_ms)
        return false;
    b->full_ms += every_ms;
    return true;
}

bool log_may(struct log_budget *b, int64_t now_ms)
{
    return log_budget_take(b, LOG_BURST, LOG_EVERY_MS, now_ms);
}

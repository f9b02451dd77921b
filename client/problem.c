// SPDX-License-Identifier: Apache-2.0
// An error of the daemon names members of requests. Here they become options of the command
// line, in the sentence too.
#include "client/problem.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/print.h"
#include "client/socket.h"
#include "model/spec.h"

// "--run-timeout" for the run's member "timeout_s", "--allow-different" of any command; else "".
static const char *option_of(const char *member, char out[static PARAM_OPTION_ROOM])
{
    const struct param *p = param_find(&spec_common, member);
    for (int b = 0; b < BENCHMARKS && !p; b++)
        p = param_find(&benchmarks[b].params, member);
    *out = '\0';
    return p ? param_option(p, out) : out;
}

// What a user of the command line does where the daemon names a request: "(GET /v1/history …)".
static const struct {
    const char *request, *hint;
} hints[] = {
    {"(PUT /v1/baselines", "numaprobe baseline set default 17 18 19"},
    {"(GET /v1/baselines", "see numaprobe baseline list"},
    {"(GET /v1/benchmarks", "see numaprobe help run"},
    {"(GET /v1/history", "see numaprobe history"},
    {"(GET /openapi.json", "is this the address of the right daemon, of this version?"},
    {"(GET /v1/runs", NULL}, // the command stands before it
};

static void write_text(const char *text, struct buf *out)
{
    for (size_t i = 0; i < COUNT_OF(hints); i++) {
        const char *from = strstr(text, hints[i].request), *to = from ? strchr(from, ')') : NULL;
        if (!to)
            continue;
        CLEANUP_BUF struct buf b = BUF_INIT;
        buf_add(&b, text, (size_t)(from - text));
        if (hints[i].hint)
            buf_fmt(&b, "(%s)", hints[i].hint);
        else if (b.len && b.data[b.len - 1] == ' ')
            b.len--; // the blank before it
        buf_str(&b, to + 1);
        buf_plain(out, buf_text(&b));
        return;
    }
    buf_plain(out, text);
}

// What was given without an option, where the text is a sentence about it: "run 44 is canceled: it
// has no complete result".
static bool is_operand(const char *member, enum err_code code)
{
    static const char *const operands[] = {"id", "base", "with", "page kind", "runs", "target"};
    if (strcmp(member, "url") == 0)
        return true;
    if (code != ERR_CONFLICT && code != ERR_NOT_FOUND)
        return false;
    for (size_t i = 0; i < COUNT_OF(operands); i++)
        if (strcmp(member, operands[i]) == 0)
            return true;
    return false;
}

void problem_write(const struct err *err, struct buf *out)
{
    char option[PARAM_OPTION_ROOM];
    size_t n = strlen(err->member);
    bool said = strncmp(err->text, err->member, n) == 0; // "line 3: …", "load is 3.92"
    // In a conflict a parameter of a run is what two runs differ in, and no option of this command.
    bool parameter = n && *option_of(err->member, option);
    if (parameter && err->code == ERR_CONFLICT) {
        // the sentence names it
    } else if (parameter && err->code != ERR_BUSY) {
        buf_fmt(out, "--%s: ", option);
    } else if (n && !said && !is_operand(err->member, err->code)) {
        buf_plain(out, err->member);
        buf_str(out, ": ");
    }
    write_text(err->text, out);
}

static const char *access_hint; // NULL: that of a node's daemon

void problem_access(const char *text)
{
    access_hint = text;
}

void problem_of_collector(void)
{
    problem_access("use a token (--token-file=FILE) or the collector's Unix socket "
                   "(--fleet=unix:" SOCKET_OF_COLLECTOR ")");
}

// A request without a token over TCP: the socket may be closed to this account, or not be used.
static void print_access_hint(void)
{
    struct err denied;
    if (access_hint) {
        fprintf(stderr, "numaprobe: %s\n", access_hint);
        return;
    }
    if (socket_denied(SOCKET_OF_SYSTEM)) {
        socket_set_denied(SOCKET_OF_SYSTEM, &denied);
        fprintf(stderr, "numaprobe: %s\n", denied.text);
    }
    fputs("numaprobe: use a token (--token-file=FILE) or the Unix socket "
          "(--url=unix:" SOCKET_OF_SYSTEM ")\n",
          stderr);
}

static const char *next_hint;

void problem_hint(const char *text)
{
    next_hint = text;
}

int problem_report(const char *about, const struct err *err)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    buf_str(&b, "numaprobe: ");
    if (about) {
        buf_plain(&b, about);
        buf_str(&b, ": ");
    }
    problem_write(err, &b);
    fprintf(stderr, "%s\n", buf_ok(&b) ? buf_text(&b) : "numaprobe: no memory");
    if (err->code == ERR_UNAUTHORIZED)
        print_access_hint();
    if (next_hint)
        fprintf(stderr, "numaprobe: %s\n", next_hint);
    next_hint = NULL;
    return err_info(err->code)->exit;
}

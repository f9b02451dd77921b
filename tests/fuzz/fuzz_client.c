// SPDX-License-Identifier: Apache-2.0
// The command line against a server that lies. The first byte chooses the command, the second the
// status and the size of the pieces; answers follow, cut by 0x1f. Whatever the server says: a
// command ends, with one of its exit statuses, and what it prints holds nothing that a terminal
// would obey.
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/cli.h"
#include "tests/fuzz/fake_fetch.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS_MAX = 5, REQUESTS_MAX = 200 };

static const struct {
    const char *words[WORDS_MAX];
    bool raw;   // a picture or a document, handed on as it is
    bool polls; // asks until the run is over
} commands_of[] = {
    {{"runs"}},
    {{"runs", "-o", "json"}},
    {{"runs", "-o", "ndjson"}},
    {{"runs", "-o", "csv"}},
    {{"show", "1"}},
    {{"show", "last", "-o", "json"}},
    {{"show", "1", "--follow"}, .polls = true},
    {{"matrix", "1"}},
    {{"matrix", "1", "-o", "csv"}},
    {{"matrix", "1", "-o", "ndjson"}},
    {{"matrix", "1", "-o", "json"}},
    {{"log", "1"}},
    {{"plot", "1", "--text"}},
    {{"plot", "1"}, .raw = true},
    {{"report", "1"}},
    {{"report", "1", "-o", "json"}},
    {{"compare", "1", "2"}},
    {{"compare", "1", "2", "-o", "csv"}},
    {{"history"}},
    {{"history", "latency.dram.median_ns"}},
    {{"history", "latency.dram.median_ns", "-o", "csv"}},
    {{"baseline", "list"}},
    {{"baseline", "show", "x"}},
    {{"check"}},
    {{"check", "-o", "json"}},
    {{"export", "1"}},
    {{"export", "1", "-o", "csv"}},
    {{"export", "1", "-o", "ndjson"}},
    {{"topo"}},
    {{"topo", "-o", "csv"}},
    {{"node"}},
    {{"node", "-o", "csv"}},
    {{"doctor"}},
    {{"avail"}},
    {{"avail", "-o", "json"}},
    {{"run"}, .polls = true},
    {{"run", "-o", "ndjson"}, .polls = true},
    {{"token", "list"}},
    {{"token", "create", "x"}},
    {{"label", "1", "x"}},
    {{"cancel", "1"}},
    {{"delete", "1"}},
    {{"baseline", "set", "x", "1"}},
};

// While a server is asked once a second, nobody waits here; but for processes of ours.
int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    struct timespec most = {timeout / 1000, timeout % 1000 * 1000000L};
    return n ? ppoll(fds, n, timeout < 0 ? NULL : &most, NULL) : 0;
}

void fuzz_client_begin(const char *dir)
{
    setenv("HOME", dir, 1);
    setenv("XDG_CONFIG_HOME", dir, 1);
    setenv("NUMAPROBE_URL", "http://127.0.0.1:1", 1);
}

static int set_answers(const uint8_t *data, size_t size)
{
    static const long statuses[] = {200, 200, 200, 200, 202, 404, 409, 500};
    struct fake_answer list[FAKE_ANSWERS_MAX] = {0};
    int n = 0;
    size_t piece = (size_t)1 << (data[1] >> 3 & 15);
    for (size_t at = 2; at <= size && n < FAKE_ANSWERS_MAX;) {
        const uint8_t *cut = at < size ? memchr(data + at, 0x1f, size - at) : NULL;
        size_t end = cut ? (size_t)(cut - data) : size;
        list[n++] = (struct fake_answer){statuses[data[1] & 7], data + at, end - at, piece};
        at = end + 1;
    }
    if (!n)
        list[n++] = (struct fake_answer){200, data, 0, 1};
    fake_fetch_set(list, n, REQUESTS_MAX);
    return n;
}

// Text that ends its lines and does nothing else.
static void check_harmless(const char *text, size_t n)
{
    fuzz_hold(str_utf8_valid(text, n));
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        fuzz_hold(c >= 0x20 || c == '\n' || c == '\t');
        fuzz_hold(c != 0x7f && !(c == 0xc2 && i + 1 < n && (text[i + 1] & 0xe0) == 0x80));
    }
}

static int run_command(const char *const *words)
{
    char program[] = "numaprobe", copies[WORDS_MAX][32];
    char *argv[WORDS_MAX + 2] = {program};
    int argc = 1;
    for (; argc <= WORDS_MAX && words[argc - 1]; argc++) {
        snprintf(copies[argc - 1], sizeof copies[0], "%s", words[argc - 1]);
        argv[argc] = copies[argc - 1];
    }
    return cli_main(argc, argv);
}

void fuzz_client(const uint8_t *data, size_t size)
{
    if (size < 2)
        return;
    size_t k = *data % COUNT_OF(commands_of);
    char *out = NULL, *err = NULL;
    size_t n_out = 0, n_err = 0;
    FILE *real_out = stdout, *real_err = stderr;
    set_answers(data, size);
    FILE *to_out = open_memstream(&out, &n_out), *to_err = open_memstream(&err, &n_err);
    fuzz_hold(to_out && to_err);
    stdout = to_out;
    stderr = to_err;
    int status = run_command(commands_of[k].words);
    stdout = real_out;
    stderr = real_err;
    fclose(to_out);
    fclose(to_err);
    fuzz_hold((status >= 0 && status <= 8) || status == 130);
    fuzz_hold(commands_of[k].polls || fake_fetch_requests() <= REQUESTS_MAX);
    if (!commands_of[k].raw)
        check_harmless(out, n_out);
    check_harmless(err, n_err);
    free(out);
    free(err);
}

// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

// What is written to stderr by log_error.
static void written(const struct err *err, char *out, size_t room)
{
    int ends[2], before = dup(STDERR_FILENO);
    CHECK(before >= 0 && pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) >= 0, "stderr is a pipe");
    log_error("test", err);
    dup2(before, STDERR_FILENO);
    close(before);
    close(ends[1]);
    ssize_t n = read(ends[0], out, room - 1);
    out[n > 0 ? n : 0] = '\0';
    close(ends[0]);
}

static void values_end_where_they_should(void)
{
    struct err err;
    char line[1200];
    log_init(LOG_LVL_INFO, true);
    err_set(&err, ERR_INVALID, "listen", "got \"a\\b\" event=ready\nx");
    written(&err, line, sizeof line);
    CHECK(!strcmp(line, "<3>event=test code=invalid member=listen "
                        "text=\"got \\\"a\\\\b\\\" event=ready x\"\n"),
          "quotes of a text do not end it: %s", line);
}

static void nothing_is_obeyed(void)
{
    char line[1200];
    struct err err = {.code = ERR_INVALID,
                      .text = "\x1b[2J \xc2\x9b"
                              "2J \xe2\x80\xae \xff \xc3\xa9"};
    log_init(LOG_LVL_INFO, true);
    written(&err, line, sizeof line);
    CHECK(strstr(line, "text=\"?[2J ?2J ? ? \xc3\xa9\"\n"), "controls are replaced: %s", line);
}

static void long_texts(void)
{
    char text[2000];
    memset(text, '"', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct log_quoted q = log_quote(text);
    size_t n = strlen(q.text);
    CHECK(n >= sizeof q.text - 2 && n % 2 == 0, "a long text is cut between characters: %zu", n);
    CHECK(!*log_quote("").text, "an empty one stays empty");
}

int main(void)
{
    values_end_where_they_should();
    nothing_is_obeyed();
    long_texts();
    return tap_done();
}

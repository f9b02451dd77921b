// SPDX-License-Identifier: Apache-2.0
// The file of tokens. What is read writes back as lines that mean the same.
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "http/access/tokens.h"
#include "tests/fuzz/fuzz.h"

static char path[300];

void fuzz_tokens_begin(const char *dir)
{
    snprintf(path, sizeof path, "%s/tokens", dir);
}

static void check_list(struct tokens *t)
{
    const struct token *list = NULL;
    int n = 0;
    fuzz_hold(tokens_list(t, &list, &n, NULL) == 0 && n >= 0 && n <= TOKENS_MAX);
    for (int i = 0; i < n; i++) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        struct token again;
        token_write_line(&list[i], &line);
        fuzz_hold(line.len && buf_text(&line)[line.len - 1] == '\n');
        line.data[line.len - 1] = '\0';
        fuzz_hold(token_read_line(&again, line.data, NULL) == 0);
        fuzz_hold(again.scope == list[i].scope && again.scope > SCOPE_NONE);
        fuzz_hold(strcmp(again.name, list[i].name) == 0 && strcmp(again.hash, list[i].hash) == 0);
    }
}

void fuzz_tokens(const uint8_t *data, size_t size)
{
    struct err err = {0};
    fuzz_write(path, data, size);
    struct tokens *t = tokens_open(path, &err);
    fuzz_accepted = t;
    if (t)
        check_list(t);
    else
        fuzz_hold(err.code != ERR_NONE && *err.text);
    fuzz_hold(!t || tokens_find(t, "np_guess") == NULL);
    tokens_free(t);
}

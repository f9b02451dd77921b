// SPDX-License-Identifier: Apache-2.0
// Node sets. What is read folds into a text that has the same names, and all of them are names.
// Groups are made of the text itself: @3 is what follows its third byte.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/nodeset.h"
#include "tests/fuzz/fuzz.h"

static int find(void *ctx, const char *group, struct buf *out, struct err *err)
{
    const char *text = ctx;
    size_t at = isdigit((unsigned char)*group) ? (size_t)(*group - '0') : strlen(text);
    fuzz_hold(*group && strlen(group) < NODESET_NAME_ROOM);
    if (at >= strlen(text))
        return err_set(err, ERR_NOT_FOUND, "nodes", "there is no group %s", group);
    buf_str(out, text + at);
    return 0;
}

static void check_fold(const struct nodeset *s)
{
    CLEANUP_BUF struct buf fold = BUF_INIT;
    CLEANUP_NODESET struct nodeset again = {0};
    for (int i = 0; i < s->n; i++) {
        fuzz_hold(nodeset_name_check(s->names[i], NULL) == 0);
        fuzz_hold(i == 0 || nodeset_name_order(s->names[i - 1], s->names[i]) < 0);
    }
    nodeset_fold(s, &fold);
    // numbers of more than 18 digits are names, but no ranges; and a fold may be longer than a text
    if (nodeset_parse(&again, buf_text(&fold), NULL, NULL) < 0)
        return;
    fuzz_hold(again.n == s->n);
    for (int i = 0; i < s->n; i++)
        fuzz_hold(strcmp(s->names[i], again.names[i]) == 0);
}

void fuzz_nodeset(const uint8_t *data, size_t size)
{
    CLEANUP_MEM char *text = fuzz_text(data, size);
    CLEANUP_NODESET struct nodeset s = {0};
    struct err err = {0};
    const struct nodeset_groups groups = {find, text};
    fuzz_accepted = nodeset_parse(&s, text, &groups, &err) == 0;
    if (fuzz_accepted)
        check_fold(&s);
    else
        fuzz_hold(err.code == ERR_INVALID || err.code == ERR_NOT_FOUND);
    fuzz_hold(fuzz_accepted || (*err.text && !s.names));
}

// SPDX-License-Identifier: Apache-2.0
// Names as runs of numbers.
#include "base/cleanup.h"
#include "fleet/services/name_runs.h"
#include "tests/unit/tap.h"

static const struct {
    const char *names[8], *runs, *what;
} rows[] = {
    {{NULL}, "[]", "nothing"},
    {{"n09", "n10", "n11"}, "[\"n[09-11]\"]", "a run keeps its width"},
    {{"n9", "n10", "n11"}, "[\"n9\",\"n[10-11]\"]", "another width is another run"},
    {{"n1", "n3", "n4"}, "[\"n1\",\"n[3-4]\"]", "a gap"},
    {{"r1n1-ib", "r1n2-ib", "r2n3-ib"},
     "[\"r1n[1-2]-ib\",\"r2n3-ib\"]",
     "the last number counts, and what is around it stays"},
    {{"n1-ib", "n2"}, "[\"n1-ib\",\"n2\"]", "another end"},
    {{"login", "login", "mgmt"}, "[\"login\",\"login\",\"mgmt\"]", "no number"},
    {{"n00000000012345678901", "n00000000012345678902"},
     "[\"n00000000012345678901\",\"n00000000012345678902\"]",
     "a number that fits nothing"},
};

int main(void)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        CLEANUP_BUF struct buf out = BUF_INIT;
        struct jsonw w = jsonw_to(&out);
        struct name_runs runs = {.w = &w};
        jsonw_array(&w, NULL);
        for (int k = 0; rows[i].names[k]; k++)
            name_runs_add(&runs, rows[i].names[k]);
        name_runs_end(&runs);
        jsonw_end(&w);
        CHECK_STR(buf_text(&out), rows[i].runs, "%s", rows[i].what);
    }
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// Any bytes as a document to import. What is taken must be a run that could be stored; what is
// refused must say why and leave nothing. A unit separator (0x1f) begins a mapping.
#include <stdlib.h>
#include <string.h>

#include "formats/intake.h"
#include "tests/fuzz/fuzz.h"

static void check_taken(const struct intake *in)
{
    fuzz_hold(in->n > 0 && in->n <= INTAKE_RUNS_MAX);
    for (int i = 0; i < in->n; i++) {
        const struct run_document *w = &in->list[i];
        fuzz_hold(run_document_check(w, NULL) == 0 && run_state_final(w->run.state));
        fuzz_hold(run_node_check(w->run.node, NULL) == 0 &&
                  run_label_check(w->run.label, NULL) == 0);
        fuzz_hold(spec_check(&w->run.spec, NULL) == 0 && w->run.measured_ms > 0);
        fuzz_hold(strlen(in->keys[i]) == 64);
    }
}

void fuzz_import(const uint8_t *data, size_t size)
{
    struct intake in = {0};
    struct err err = {0};
    const uint8_t *cut = size ? memchr(data, 0x1f, size) : NULL;
    size_t len = cut ? (size_t)(cut - data) : size;
    char *text = fuzz_text(data, len), *mapping = cut ? fuzz_text(cut + 1, size - len - 1) : NULL;
    text = realloc(text, len ? len : 1); // no NUL here
    struct intake_options o = {.mapping = mapping, .now_ms = 1795219200000};
    fuzz_accepted = intake_read(&in, text, len, &o, &err) == 0;
    if (fuzz_accepted)
        check_taken(&in);
    else
        fuzz_hold(in.n == 0 && in.list == NULL && err.code != ERR_NONE && *err.text);
    intake_fini(&in);
    free(mapping);
    free(text);
}

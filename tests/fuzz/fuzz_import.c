// SPDX-License-Identifier: Apache-2.0
// Any bytes as a document to import. What is taken must be a run that could be stored; what is
// refused must say why and leave nothing. A unit separator (0x1f) begins a mapping.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/intake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hold(bool promise)
{
    if (!promise)
        abort();
}

static void check_taken(const struct intake *in)
{
    hold(in->n > 0 && in->n <= INTAKE_RUNS_MAX);
    for (int i = 0; i < in->n; i++) {
        const struct whole *w = &in->list[i];
        hold(whole_check(w, NULL) == 0 && run_state_final(w->run.state));
        hold(run_node_check(w->run.node, NULL) == 0 && run_label_check(w->run.label, NULL) == 0);
        hold(spec_check(&w->run.spec, NULL) == 0 && w->run.measured_ms > 0);
        hold(strlen(in->keys[i]) == 64);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct intake in = {0};
    struct err err = {0};
    const uint8_t *cut = size ? memchr(data, 0x1f, size) : NULL;
    size_t len = cut ? (size_t)(cut - data) : size;
    char *text = malloc(len + 1),
         *mapping = cut ? strndup((const char *)cut + 1, size - len - 1) : NULL;
    hold(text != NULL);
    memcpy(text, data, len); // exactly as long as it is, so that reading past it is seen
    text = realloc(text, len ? len : 1);
    struct intake_options o = {.mapping = mapping, .now_ms = 1795219200000};
    if (intake_read(&in, text, len, &o, &err) == 0)
        check_taken(&in);
    else
        hold(in.n == 0 && in.list == NULL && err.code != ERR_NONE && *err.text);
    intake_fini(&in);
    free(mapping);
    free(text);
    return 0;
}

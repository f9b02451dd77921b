// SPDX-License-Identifier: Apache-2.0
// numaprobe label: prints, sets or removes the label of a run. A label keeps a run from retention,
// so that removing one takes a word of its own.
#include <stdio.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/print.h"
#include "client/result.h"
#include "model/run.h"

struct label_flags {
    bool remove;
};

static const struct param label_params[] = {
    {.name = "remove",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct label_flags, remove),
     .def = "false",
     .help = "Remove the label. Retention may delete the run afterwards."},
};
const struct param_table label_options = {label_params, COUNT_OF(label_params)};

static int print_label(const struct cli *c, int64_t id, const struct json *run)
{
    CLEANUP_BUF struct buf label = BUF_INIT;
    buf_plain(&label, json_get_text(run, "label", ""));
    if (c->output != OUTPUT_TABLE)
        print_json(run);
    else if (label.len)
        puts(buf_text(&label));
    else
        fprintf(stderr, "numaprobe: run %lld has no label\n", (long long)id);
    return 0;
}

static int label_put(const struct cli *c, int64_t id, const char *label, struct json **run,
                     struct err *err)
{
    char path[80];
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    snprintf(path, sizeof path, "/v1/runs/%lld/label", (long long)id);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "label", label);
    jsonw_end(&w);
    return http_json(c, "PUT", path, buf_text(&body), run, err);
}

int cmd_label(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct label_flags *f = i->options;
    const char *label = i->n > 1 ? i->operands[1] : "";
    int64_t id;
    CLEANUP_JSON struct json *run = NULL;
    if (print_refuse_csv(c, "a label is", err) < 0)
        return -1;
    if (f->remove && i->n > 1)
        return err_set(err, ERR_USAGE, "",
                       "--remove takes no label: numaprobe label %.40s --remove", i->operands[0]);
    if (i->n > 1 && !*label)
        return err_set(err, ERR_USAGE, "",
                       "the label is empty: numaprobe label %.40s --remove "
                       "removes it",
                       i->operands[0]);
    if (result_find(c, i->operands, i->n, &id, err) < 0 || run_label_check(label, err) < 0)
        return -1;
    if (!f->remove && !*label)
        return result_get_run(c, id, 0, &run, err) < 0 ? -1 : print_label(c, id, run);
    if (label_put(c, id, label, &run, err) < 0)
        return -1;
    if (print_if_json(c, run))
        return 0;
    if (*label)
        printf("run %lld has the label \"%s\"\n", (long long)id, label);
    else
        printf("run %lld: the label is removed\n", (long long)id);
    return 0;
}

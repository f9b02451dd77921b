// SPDX-License-Identifier: Apache-2.0
// Slurm gives no task of an array a node of its own. So the array is held until each task has its
// node. What a client wrote stands in single quotes, inside a here-document that expands nothing;
// so a line break is all that could leave it, and is refused.
#include "fleet/campaigns/script.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/utf8.h"
#include "model/spec.h"

// A word as a shell reads it back.
static void add_quoted(struct buf *out, const char *text)
{
    buf_char(out, '\'');
    for (const char *c = text; *c; c++)
        if (*c == '\'')
            buf_str(out, "'\\''");
        else
            buf_char(out, *c);
    buf_char(out, '\'');
}

// A member as an option. What is the default anyway is left out.
static int add_option(const struct param *p, const struct spec *s, const struct spec *defaults,
                      struct buf *out, struct err *err)
{
    char option[PARAM_OPTION_ROOM], value[SPEC_TEXT_MAX], usual[SPEC_TEXT_MAX];
    CLEANUP_BUF struct buf word = BUF_INIT;
    char member[sizeof err->member];
    param_option(p, option);
    param_get_text(p, s, value, sizeof value);
    param_get_text(p, defaults, usual, sizeof usual);
    snprintf(member, sizeof member, "spec.%.50s", p->name);
    if (strcmp(value, usual) == 0)
        return 0;
    if (!utf8_all_shown(value))
        return err_set(err, ERR_INVALID, member,
                       "must have no line break or other control character: it becomes a line of "
                       "a script");
    if (p->kind == PARAM_BOOL)
        buf_fmt(&word, "--%s%s", strcmp(value, "true") == 0 ? "" : "no-", option);
    else
        buf_fmt(&word, "--%s=%s", option, value);
    buf_char(out, ' ');
    buf_needs(out, &word);
    add_quoted(out, buf_text(&word));
    return 0;
}

int campaign_script_body(const struct campaign_request *r, struct buf *out, struct err *err)
{
    CLEANUP_MEM struct spec *s = malloc(2 * sizeof *s);
    CLEANUP_JSON struct json *spec = json_parse(buf_text(&r->spec), r->spec.len, err);
    if (!s)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a specification");
    if (!spec || spec_from_json(s, spec, NULL, err) < 0)
        return -1;
    spec_init(s + 1, (enum benchmark_id)s->benchmark);
    buf_fmt(out, "exec numaprobe run %s", benchmarks[s->benchmark].name);
    if (s->quick) {
        buf_str(out, " --quick");
        spec_quick(s + 1);
    }
    for (const struct json *m = json_first(spec); m; m = json_next(m)) {
        const struct param *p = spec_param(s, json_name(m));
        if (p && add_option(p, s, s + 1, out, err) < 0)
            return -1;
    }
    buf_char(out, '\n');
    return 0;
}

// Slurm has one limit per array, and decides itself when a task begins.
int campaign_script_check(const struct campaign_request *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    const struct {
        const char *member;
        bool given;
    } others[] = {{"at_once_each", r->each_by != 0},
                  {"window", r->rules.window.n > 0},
                  {"budget_node_minutes", r->rules.budget_s > 0}};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (others[i].given)
            return err_set(err, ERR_INVALID, others[i].member,
                           "cannot be with through=slurm, where Slurm decides when a task begins");
    return campaign_script_body(r, &body, err);
}

int campaign_script_write(const struct campaign_request *r, const struct nodeset *nodes,
                          int64_t minutes, struct buf *out, struct err *err)
{
    buf_fmt(out,
            "#!/bin/sh\n"
            "# Campaign %s: %d node%s, at most %d at the same time.\n"
            "set -eu\n"
            "nodes='",
            r->name, nodes->n, str_plural(nodes->n), r->rules.at_once);
    for (int i = 0; i < nodes->n; i++) {
        buf_str(out, i ? " " : "");
        buf_str(out, nodes->names[i]);
    }
    buf_fmt(out,
            "'\n"
            "job=$(sbatch --parsable --hold --array=1-%d%%%d --nodes=1 --exclusive --time=%" PRId64
            " \\\n    --job-name='numaprobe-%s' --output=/dev/null <<'END_OF_JOB'\n"
            "#!/bin/sh\n",
            nodes->n, r->rules.at_once, minutes, r->name);
    if (campaign_script_body(r, out, err) < 0)
        return -1;
    buf_str(out, "END_OF_JOB\n"
                 ")\n"
                 "job=${job%%;*}\n"
                 "trap 'scancel \"$job\"' EXIT\n"
                 "trap 'exit 130' INT\n" // a signal alone ends some shells without their EXIT
                 "trap 'exit 143' TERM HUP\n"
                 "task=0\n"
                 "for node in $nodes; do\n"
                 "    task=$((task + 1))\n"
                 "    scontrol update JobId=\"${job}_$task\" ReqNodeList=\"$node\"\n"
                 "done\n"
                 "scontrol release \"$job\"\n"
                 "trap - EXIT INT TERM HUP\n");
    buf_fmt(out, "echo \"job $job: $task node%s\"\n", str_plural(nodes->n));
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for a script");
}

// SPDX-License-Identifier: Apache-2.0
// Files from elsewhere become runs: each file is a request of its own, so that one bad file keeps
// no client out. JSON lines may be many; they go in parts, each stored whole or not at all.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/print.h"
#include "client/problem.h"
#include "client/when.h"

enum {
    BODY_MAX = 32 << 20, // what the daemon takes: IMPORT_MAX
    PART_BYTES = 4 << 20,
    PART_LINES = 500, // half of what the daemon takes
};

struct import_flags {
    char mapping[512], mode[16], node[64], label[64], date[40], pages[8], method[40];
    bool dry_run;
};

static const struct param import_params[] = {
    PARAM_TEXT_ROW(
        struct import_flags, mapping, .metavar = "FILE",
        .help = "Placement of the ranks of a CSV (columns rank,cpu_id,cpu_numa,memory_numa)."),
    PARAM_TEXT_ROW(struct import_flags, mode, .metavar = "MODE",
                   .help = "concurrent or serial. Otherwise as log lines or the file's name say, "
                           "else concurrent."),
    PARAM_TEXT_ROW(struct import_flags, node, .metavar = "NAME",
                   .help = "Host name. Otherwise as log lines say, else \"unknown\"."),
    PARAM_TEXT_ROW(struct import_flags, label, .metavar = "TEXT",
                   .help = "A label for the runs; labelled runs stay."),
    PARAM_TEXT_ROW(struct import_flags, date, .metavar = "TIME",
                   .help = "When it was measured: 2026-01-31T00:00:00Z, a day, or \"file\" for the "
                           "file's own date. "
                           "Otherwise as log lines say, else now."),
    PARAM_TEXT_ROW(struct import_flags, pages, .metavar = "KIND",
                   .help = "Page kind, if known: thp, 4k, huge, 2M or 1G."),
    PARAM_TEXT_ROW(struct import_flags, method, .metavar = "NAME",
                   .help = "How it was measured. Otherwise as log lines say, else classic-v1."),
    {.name = "dry_run",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct import_flags, dry_run),
     .def = "false",
     .help = "Only say what would be stored."},
};
const struct param_table import_options = {import_params, COUNT_OF(import_params)};

// ---- reading ----

struct source {
    const char *name;
    FILE *file;
    char date[32]; // of the file; "" unknown
};

static void source_close(struct source *s)
{
    if (s->file && s->file != stdin)
        fclose(s->file);
}

static int source_open(struct source *s, const char *name, struct err *err)
{
    struct stat st;
    bool standard = strcmp(name, "-") == 0;
    if (!*name)
        return err_set(err, ERR_USAGE, "", "the name of the file is empty");
    *s = (struct source){.name = name, .file = standard ? stdin : fopen(name, "re")};
    if (!s->file)
        return err_sys(err, "cannot be opened");
    if (fstat(fileno(s->file), &st) < 0 || S_ISDIR(st.st_mode))
        return err_set(err, ERR_USAGE, "", "is no file");
    if (S_ISREG(st.st_mode))
        clock_rfc3339((int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000, s->date);
    return 0;
}

// A line with its end, of a longer one BODY_MAX bytes and one more; returns how many bytes.
static size_t cmd_import_read_line(struct source *s, struct buf *out)
{
    char block[4096];
    size_t n = 0, all = 0;
    for (int c = 0; c != '\n' && all <= BODY_MAX && (c = getc_unlocked(s->file)) != EOF; all++) {
        block[n++] = (char)c;
        if (n == sizeof block) {
            buf_add(out, block, n);
            n = 0;
        }
    }
    buf_add(out, block, n);
    return all;
}

static int read_rest(struct source *s, struct buf *out, struct err *err)
{
    char block[65536];
    size_t n;
    while ((n = fread(block, 1, sizeof block, s->file)) > 0 && out->len <= BODY_MAX)
        buf_add(out, block, n);
    if (ferror(s->file))
        return err_sys(err, "cannot be read");
    if (!buf_ok(out))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the file");
    if (out->len > BODY_MAX)
        return err_set(err, ERR_TOO_LARGE, "", "is larger than %d MiB", BODY_MAX >> 20);
    return 0;
}

static int read_whole(const char *name, struct buf *out, struct err *err)
{
    struct source s CLEANUP(source_close) = {0};
    return source_open(&s, name, err) < 0 ? -1 : read_rest(&s, out, err);
}

// ---- asking ----

static const struct column columns[] = {
    {"file", "FILE", false, true},   {"run", "RUN", true},       {"node", "NODE", false, true},
    {"measured", "MEASURED", false}, {"mode", "MODE", false},    {"ranks", "RANKS", true},
    {"cells", "CELLS", true},        {"stored", "STORED", true}, {"existing", "EXISTING", true},
    {"notes", "NOTES", true},
};

struct importing {
    const struct cli *cli;
    const struct import_flags *flags;
    struct grid grid;
};

// Query parameters, or members of an envelope where there is a mapping.
static const char *date_of(const struct importing *im, const struct source *s)
{
    return strcmp(im->flags->date, "file") == 0 ? s->date : im->flags->date;
}

static const char *base_name(const struct source *s)
{
    const char *slash = strrchr(s->name, '/');
    return s->file == stdin ? "" : slash ? slash + 1 : s->name;
}

static void query_of(const struct importing *im, const struct source *s, struct buf *path)
{
    const struct import_flags *f = im->flags;
    const struct {
        const char *name, *value;
    } all[] = {{"mode", f->mode},     {"node", f->node},     {"label", f->label},
               {"pages", f->pages},   {"method", f->method}, {"date", date_of(im, s)},
               {"file", base_name(s)}};
    buf_fmt(path, "/v1/imports?dry_run=%s", f->dry_run ? "true" : "false");
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (*all[i].value) {
            buf_fmt(path, "&%s=", all[i].name);
            http_escape(path, all[i].value);
        }
}

static int wrap(const struct importing *im, struct buf *body, struct err *err)
{
    CLEANUP_BUF struct buf mapping = BUF_INIT, text = *body;
    *body = BUF_INIT;
    if (read_whole(im->flags->mapping, &mapping, err) < 0)
        return err_prefix(err, "mapping %.100s", im->flags->mapping);
    if (strlen(buf_text(&text)) != text.len || strlen(buf_text(&mapping)) != mapping.len)
        return err_set(err, ERR_INVALID, "", "the text holds a NUL byte");
    struct jsonw w = jsonw_to(body);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "text", buf_text(&text));
    jsonw_text(&w, "mapping", buf_text(&mapping));
    jsonw_end(&w);
    return 0;
}

static void cmd_import_add_row(struct importing *im, const struct source *s, const struct json *run,
                               const char *which, int64_t stored, int64_t known)
{
    struct grid *g = &im->grid;
    grid_cell(g, "%s", s->name);
    grid_cell(g, "%s", which);
    grid_cell(g, "%s", json_get_text(run, "node", ""));
    char time[WHEN_ROOM];
    grid_cell(g, "%s", when_show(json_get_text(run, "measured", ""), time));
    grid_cell(g, "%s", json_get_text(json_get(run, "spec"), "mode", ""));
    grid_cell(g, "%lld", (long long)json_get_i64(run, "ranks", 0));
    grid_cell(g, "%lld", (long long)json_get_i64(run, "cells", 0));
    grid_cell(g, "%lld", (long long)stored);
    grid_cell(g, "%lld", (long long)known);
    grid_cell(g, "%d", json_count(json_get(run, "conditions")));
}

// "7", or "7-19" of several.
static void range_of(const struct json *runs, char *out, size_t room)
{
    int64_t least = 0, most = 0;
    for (const struct json *r = json_first(runs); r; r = json_next(r)) {
        int64_t id = json_get_i64(r, "id", 0);
        least = !least || id < least ? id : least;
        most = id > most ? id : most;
    }
    if (least == most)
        snprintf(out, room, "%lld", (long long)least);
    else
        snprintf(out, room, "%lld-%lld", (long long)least, (long long)most);
}

static void show_answer(struct importing *im, const struct source *s, const struct json *answer,
                        bool stored)
{
    const struct json *runs = json_get(answer, "runs"), *first = json_first(runs);
    char which[48] = "";
    if (im->cli->output == OUTPUT_JSON || im->cli->output == OUTPUT_NDJSON) {
        print_json(answer);
        return;
    }
    if (!runs) {
        snprintf(which, sizeof which, "%lld", (long long)json_get_i64(answer, "id", 0));
        cmd_import_add_row(im, s, answer, which, stored, !stored);
    } else if (!im->flags->dry_run) {
        range_of(runs, which, sizeof which);
        cmd_import_add_row(im, s, json_next(first) ? NULL : first, which,
                           json_get_i64(answer, "stored", 0), json_get_i64(answer, "existing", 0));
    }
    for (const struct json *r = first; im->flags->dry_run && r; r = json_next(r)) {
        int64_t known = json_get_i64(r, "existing_run", 0);
        *which = '\0';
        if (known)
            snprintf(which, sizeof which, "%lld", (long long)known);
        cmd_import_add_row(im, s, json_get(r, "run"), which, 0, known > 0);
    }
}

static int send(struct importing *im, const struct source *s, const struct buf *body,
                struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    CLEANUP_REPLY struct http_reply r = {0};
    query_of(im, s, &path);
    bool envelope = *im->flags->mapping;
    if (http_post(im->cli, buf_text(&path), envelope ? "application/json" : "text/plain", body, &r,
                  err) < 0)
        return -1;
    if (r.status != 200 && r.status != 201)
        return http_problem(&r, err);
    CLEANUP_JSON struct json *answer = json_parse(buf_text(&r.body), r.body.len, err);
    if (!answer)
        return err_prefix(err, "the response of %.100s", im->cli->url);
    show_answer(im, s, answer, r.status == 201);
    return 0;
}

// ---- files ----

// What the daemon counts begins at line `first`.
static int part_failed(int64_t first, struct err *err)
{
    return first > 1 ? err_prefix(err, "counted from line %lld", (long long)first) : -1;
}

static int send_part(struct importing *im, struct source *s, struct buf *part, int64_t first,
                     struct err *err)
{
    bool blank = !part->len || !memchr(part->data, '{', part->len);
    if (!blank && send(im, s, part, err) < 0)
        return part_failed(first, err);
    buf_reset(part);
    return 0;
}

// The first line is in `part` already.
static int send_lines(struct importing *im, struct source *s, struct buf *part, struct err *err)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    int64_t first = 1, lines = 1;
    for (;;) {
        buf_reset(&line);
        size_t n = cmd_import_read_line(s, &line);
        if (!n || part->len + n > PART_BYTES || lines == PART_LINES) {
            if (send_part(im, s, part, first, err) < 0)
                return -1;
            first += lines;
            lines = 0;
        }
        if (!n)
            return ferror(s->file) ? err_sys(err, "cannot be read") : 0;
        buf_add(part, line.data, line.len);
        lines++;
        if (part->len > BODY_MAX || !buf_ok(part) || !buf_ok(&line))
            return err_set(err, ERR_TOO_LARGE, "", "line %lld is larger than %d MiB",
                           (long long)(first + lines - 1), BODY_MAX >> 20);
    }
}

static bool is_json_line(const char *line, size_t n)
{
    while (n && strchr(" \t\r\n", line[n - 1]))
        n--;
    return n > 1 && line[0] == '{' && line[n - 1] == '}';
}

static int import_file(struct importing *im, const char *name, struct err *err)
{
    struct source s CLEANUP(source_close) = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    if (source_open(&s, name, err) < 0)
        return -1;
    size_t n = cmd_import_read_line(&s, &body);
    if (n && n <= BODY_MAX && !*im->flags->mapping && is_json_line(buf_text(&body), body.len))
        return send_lines(im, &s, &body, err);
    if (read_rest(&s, &body, err) < 0 || (*im->flags->mapping && wrap(im, &body, err) < 0))
        return -1;
    return send(im, &s, &body, err);
}

static bool cmd_import_is_given(const struct import_flags *f, const char *option)
{
    const struct {
        const char *name, *value;
    } all[] = {{"mode", f->mode},   {"node", f->node},     {"label", f->label},
               {"pages", f->pages}, {"method", f->method}, {"date", f->date}};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (strcmp(all[i].name, option) == 0)
            return *all[i].value;
    return false;
}

// What is wrong in a file is called as it is there: "size", and not --size, which this command does
// not have.
static void name_in_file(const struct import_flags *f, struct err *err)
{
    if (err->code != ERR_INVALID || !*err->member)
        return;
    if (cmd_import_is_given(f, err->member) && !str_starts(err->text, "spec: "))
        err_prefix(err, "--%s", err->member);
    else
        err_name_member(err);
    *err->member = '\0';
}

int cmd_import(struct cli *c, const struct invocation *i, struct err *err)
{
    (void)err; // each file has its own
    struct importing im = {.cli = c, .flags = i->options};
    int failed = 0, status = 0;
    grid_init(&im.grid, columns, COUNT_OF(columns));
    for (int k = 0; k < i->n; k++) {
        struct err one = {0};
        if (import_file(&im, i->operands[k], &one) == 0)
            continue;
        name_in_file(im.flags, &one);
        status = problem_report(*i->operands[k] ? i->operands[k] : NULL, &one);
        failed++;
    }
    if (im.grid.n_rows && (c->output == OUTPUT_TABLE || c->output == OUTPUT_CSV))
        grid_print(&im.grid, c);
    grid_fini(&im.grid);
    if (failed && i->n > 1)
        fprintf(stderr, "numaprobe: %d of %d files were not imported\n", failed, i->n);
    return status;
}

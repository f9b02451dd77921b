// SPDX-License-Identifier: Apache-2.0
// One place decides where results go. With a channel every cell is a record at once; without
// one the matrices are kept and printed at the end.
#include "bench/session/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/ranks/life.h"
#include "bench/session/print.h"

int emit_open(struct emit *e, const struct options *o, struct err *err)
{
    *e = (struct emit){.options = o, .fd = -1, .started_ns = clock_mono_ns()};
    if (!*o->channel)
        return 0;
    e->fd = open(o->channel, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return e->fd < 0 ? err_sys(err, "cannot open the channel %.120s", o->channel) : 0;
}

static int output_write_all(int fd, const char *text, size_t n, struct err *err)
{
    while (n) {
        ssize_t did = write(fd, text, n);
        if (did < 0 && errno == EINTR)
            continue;
        if (did < 0)
            return err_sys(err, "cannot write to the channel");
        text += did;
        n -= (size_t)did;
    }
    return 0;
}

// By hand there is no channel and records go nowhere.
static int output_put(struct emit *e, const struct record *r, struct err *err)
{
    if (e->fd < 0)
        return 0;
    buf_reset(&e->line);
    record_write(r, &e->line);
    if (!buf_ok(&e->line))
        return err_set(err, ERR_NO_MEMORY, "", "no memory to write a record");
    return output_write_all(e->fd, e->line.data, e->line.len, err);
}

static void make_hello(struct emit *e, const char *launcher, uint64_t line_bytes)
{
    const struct spec *spec = &e->options->spec;
    const char *name = benchmarks[spec->benchmark].name;
    e->hello = (struct hello){
        .version = RECORD_VERSION, .ranks = e->ranks, .line_bytes = (int64_t)line_bytes};
    snprintf(e->hello.nonce, sizeof e->hello.nonce, "%s", e->options->nonce);
    snprintf(e->hello.benchmark, sizeof e->hello.benchmark, "%s", name);
    snprintf(e->hello.method, sizeof e->hello.method, "%s", spec_method(spec));
    snprintf(e->hello.launcher, sizeof e->hello.launcher, "%s", launcher);
}

int emit_begin(struct emit *e, int ranks, const char *launcher, uint64_t line_bytes,
               struct err *err)
{
    e->ranks = ranks;
    e->rank = calloc((size_t)ranks, sizeof *e->rank);
    if (!e->rank)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", ranks);
    make_hello(e, launcher, line_bytes);
    if (e->fd < 0 && e->options->format == FORMAT_TABLE)
        print_diagnostics(e, stdout);
    const struct record hello = {.kind = RECORD_HELLO, .hello = e->hello};
    return output_put(e, &hello, err);
}

int emit_matrices(struct emit *e, const struct matrix *matrices, int n, struct err *err)
{
    memcpy(e->matrix, matrices, (size_t)n * sizeof *matrices);
    e->n_matrices = n;
    for (int i = 0; i < e->n_matrices; i++) {
        const struct record head = {.kind = RECORD_MATRIX, .matrix = e->matrix[i]}; // borrowed
        if (output_put(e, &head, err) < 0)
            return -1;
    }
    return 0;
}

int emit_progress(struct emit *e, enum phase phase, int64_t done, int64_t total, int64_t eta_ms,
                  struct err *err)
{
    struct record r = {.kind = RECORD_PROGRESS,
                       .progress = {.done = done, .total = total, .eta_ms = eta_ms}};
    snprintf(r.progress.phase, sizeof r.progress.phase, "%s", phase_names[phase]);
    return output_put(e, &r, err);
}

int emit_controls(struct emit *e, int percent, struct err *err)
{
    const struct record r = {
        .kind = RECORD_PROGRESS,
        .progress = {.phase = "control pairs", .done = percent, .total = 100, .eta_ms = -1}};
    return output_put(e, &r, err);
}

static struct matrix *output_find_matrix(struct emit *e, const char *name)
{
    for (int i = 0; i < e->n_matrices; i++)
        if (strcmp(e->matrix[i].name, name) == 0)
            return &e->matrix[i];
    return NULL;
}

int emit_cell(struct emit *e, const char *matrix, int row, int col, const struct cell *c,
              struct err *err)
{
    struct record r = {.kind = RECORD_CELL, .cell = {.row = row, .col = col, .cell = *c}};
    struct matrix *m = output_find_matrix(e, matrix);
    if (!m)
        return err_set(err, ERR_INTERNAL, "", "a cell of matrix %s, which was not announced",
                       matrix);
    snprintf(r.cell.matrix, sizeof r.cell.matrix, "%s", matrix);
    *matrix_at(m, row, col) = *c;
    e->end.cells++;
    return output_put(e, &r, err);
}

int emit_condition(struct emit *e, const struct condition *c, struct err *err)
{
    const struct record r = {.kind = RECORD_CONDITION, .condition = *c};
    conditions_put(&e->conditions, c);
    return output_put(e, &r, err);
}

int emit_pairs(struct emit *e, int64_t most, struct err *err)
{
    const struct record r = {.kind = RECORD_PAIRS, .pairs = {most}};
    return output_put(e, &r, err);
}

static void output_gather(struct emit *e, const struct board *b)
{
    for (int i = 0; i < e->ranks; i++) {
        e->rank[i] = b->slot[i].info;
        for (int p = 0; p < PHASES; p++)
            if (b->slot[i].phase_ms[p] > e->end.phase_ms[p])
                e->end.phase_ms[p] = b->slot[i].phase_ms[p];
    }
}

static int emit_ranks(struct emit *e, const struct board *b, struct err *err)
{
    output_gather(e, b);
    for (int i = 0; i < e->ranks; i++) {
        const struct record r = {.kind = RECORD_RANK, .rank = e->rank[i]};
        if (output_put(e, &r, err) < 0)
            return -1;
    }
    return 0;
}

int emit_part(struct emit *e, const struct board *b, struct err *err)
{
    if (emit_ranks(e, b, err) < 0)
        return -1;
    return e->fd < 0 ? print_results(e, stdout, err) : 0;
}

int emit_end(struct emit *e, const struct board *b, struct err *err)
{
    if (emit_ranks(e, b, err) < 0)
        return -1;
    e->end.ok = true;
    const struct record end = {.kind = RECORD_END, .end = e->end};
    life_said_all();
    if (output_put(e, &end, err) < 0)
        return -1;
    return e->fd < 0 ? print_results(e, stdout, err) : 0;
}

void emit_failure(struct emit *e, const struct err *why)
{
    struct record r = {.kind = RECORD_END, .end = e->end};
    r.end.ok = false;
    r.end.code = why->code;
    memcpy(r.end.member, why->member, sizeof r.end.member);
    memcpy(r.end.text, why->text, sizeof r.end.text);
    life_said_all();
    if (e->fd >= 0)
        output_put(e, &r, NULL);
    print_failure(e->options, why, stderr);
}

void emit_fini(struct emit *e)
{
    fd_cleanup(&e->fd);
    buf_free(&e->line);
    for (int i = 0; i < e->n_matrices; i++)
        matrix_fini(&e->matrix[i]);
    free(e->rank);
    *e = (struct emit){.fd = -1};
}

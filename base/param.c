// SPDX-License-Identifier: Apache-2.0
// One table serves five readers: JSON, options, defaults, help and the catalogue. Each of them
// walks over the table and switches on the kind of the parameter.
#include "base/param.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/suggest.h"

const struct param *param_find(const struct param_table *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->params[i].name, name) == 0)
            return &t->params[i];
    return NULL;
}

static bool same_option(const char *name, const char *option)
{
    for (; *name && *option; name++, option++)
        if (*name != *option && !(*name == '_' && *option == '-'))
            return false;
    return *name == *option;
}

static bool is_option(const struct param *p, const char *option)
{
    return same_option(p->option ? p->option : p->name, option) ||
           (p->alias && strcmp(p->alias, option) == 0);
}

const struct param *param_find_option(const struct param_table *t, const char *option)
{
    for (int i = 0; i < t->n; i++)
        if (is_option(&t->params[i], option))
            return &t->params[i];
    return NULL;
}

const char *param_option(const struct param *p, char out[static PARAM_OPTION_ROOM])
{
    snprintf(out, PARAM_OPTION_ROOM, "%s", p->option ? p->option : p->name);
    for (char *c = out; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return out;
}

static void *member_of(const struct param *p, void *object)
{
    return (char *)object + p->offset;
}

static const void *member_at(const struct param *p, const void *object)
{
    return (const char *)object + p->offset;
}

void param_defaults(const struct param_table *t, void *object)
{
    for (int i = 0; i < t->n; i++) {
        struct err err = {0};
        if (param_set_text(&t->params[i], object, t->params[i].def, &err) < 0)
            abort(); // a table with a wrong default is a bug that every test finds
    }
}

static int out_of_range(const struct param *p, const char *got, struct err *err)
{
    char low[24], high[24];
    if (p->kind == PARAM_BYTES) {
        str_from_bytes((uint64_t)p->min, low, sizeof low);
        str_from_bytes((uint64_t)p->max, high, sizeof high);
    } else if (p->kind == PARAM_INT) {
        snprintf(low, sizeof low, "%.0f", p->min);
        snprintf(high, sizeof high, "%.0f", p->max);
    } else {
        snprintf(low, sizeof low, "%.10g", p->min);
        snprintf(high, sizeof high, "%.10g", p->max);
    }
    return err_set(err, ERR_INVALID, p->name, "must be from %s to %s%s%s, got %.40s", low, high,
                   p->unit ? " " : "", p->unit ? p->unit : "", got);
}

static int set_bool(const struct param *p, void *object, const char *text, struct err *err)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (unsigned i = 0; i < COUNT_OF(words); i++)
        if (strcmp(text, words[i]) == 0) {
            *(bool *)member_of(p, object) = i & 1;
            return 0;
        }
    return err_set(err, ERR_INVALID, p->name, "must be true or false, got \"%.40s\"", text);
}

static int set_enum(const struct param *p, void *object, const char *text, struct err *err)
{
    char list[160] = "";
    for (int i = 0; p->choices[i]; i++) {
        if (strcmp(text, p->choices[i]) == 0) {
            *(int *)member_of(p, object) = i;
            return 0;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", p->choices[i]);
    }
    return err_set(err, ERR_INVALID, p->name, "must be one of %s; got \"%.40s\"", list, text);
}

static bool is_time(const struct param *p)
{
    return p->unit && strcmp(p->unit, "s") == 0;
}

static const struct {
    const char *unit;
    int seconds;
} times[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};

// The units from `from` on, as texts for people have them: "s|m|h|d", "m, h or d".
struct param_time_units {
    char text[24];
};
static struct param_time_units time_units(unsigned from, const char *between, const char *last)
{
    struct param_time_units u = {""};
    for (unsigned i = from, n = 0; i < COUNT_OF(times); i++)
        n += (unsigned)snprintf(u.text + n, sizeof u.text - n, "%s%s",
                                i == from                 ? ""
                                : i + 1 < COUNT_OF(times) ? between
                                                          : last,
                                times[i].unit);
    return u;
}

// Bytes of the unit at the end of a text; 0: it has none.
static size_t unit_at_end(const char *text, const char *unit)
{
    size_t n = strlen(text), of_unit = strlen(unit);
    return n > of_unit && strcmp(text + n - of_unit, unit) == 0 ? of_unit : 0;
}

// "60" of "60s" for a parameter in s, "5" of "5m", "3" of "3%" for one in %. *factor: what the
// number is to be multiplied by.
enum { NUMBER_ROOM = 40 };
static const char *without_unit(const struct param *p, const char *text, char out[NUMBER_ROOM],
                                int *factor)
{
    size_t unit = p->unit && !is_time(p) ? unit_at_end(text, p->unit) : 0;
    *factor = 1;
    for (unsigned i = 0; i < COUNT_OF(times) && is_time(p) && !unit; i++) {
        unit = unit_at_end(text, times[i].unit);
        *factor = unit ? times[i].seconds : 1;
    }
    size_t number = strlen(text) - unit;
    if (!unit || number >= NUMBER_ROOM)
        return text;
    snprintf(out, NUMBER_ROOM, "%.*s", (int)number, text);
    return out;
}

// Of more digits than a number here can have.
static bool is_huge_integer(const char *text)
{
    const char *digits = text + (*text == '-' || *text == '+');
    return *digits && !digits[strspn(digits, "0123456789")];
}

static int no_number(const struct param *p, const char *text, bool units, struct err *err)
{
    char hint[48] = "";
    if (units && is_time(p))
        snprintf(hint, sizeof hint, ", or with %s such as 5m", time_units(1, ", ", " or ").text);
    return err_set(err, ERR_INVALID, p->name, "must be %s%s%s%s, got \"%.40s\"",
                   p->kind == PARAM_INT     ? "a whole number"
                   : p->kind == PARAM_BYTES ? "a size such as 64 or 4K"
                                            : "a number",
                   p->unit && p->kind != PARAM_BYTES ? " in " : "",
                   p->unit && p->kind != PARAM_BYTES ? p->unit : "", hint, text);
}

static int set_number(const struct param *p, void *object, const char *text, struct err *err)
{
    int64_t i = 0;
    uint64_t bytes = 0;
    double d = 0;
    char room[NUMBER_ROOM];
    int factor = 1;
    const char *number = p->kind == PARAM_BYTES ? text : without_unit(p, text, room, &factor);
    bool parsed = p->kind == PARAM_INT     ? str_to_i64(number, &i)
                  : p->kind == PARAM_BYTES ? str_to_bytes(number, 1, &bytes)
                                           : str_to_double(number, &d);
    if (!parsed)
        return is_huge_integer(number) ? out_of_range(p, text, err) : no_number(p, text, true, err);
    double value = p->kind == PARAM_INT     ? (double)i * factor
                   : p->kind == PARAM_BYTES ? (double)bytes
                                            : d * factor;
    if (value < p->min || value > p->max)
        return out_of_range(p, text, err);
    if (p->kind == PARAM_INT)
        *(int64_t *)member_of(p, object) = i * factor;
    else if (p->kind == PARAM_BYTES)
        *(uint64_t *)member_of(p, object) = bytes;
    else
        *(double *)member_of(p, object) = value;
    return 0;
}

int param_set_text(const struct param *p, void *object, const char *text, struct err *err)
{
    if (p->kind == PARAM_BOOL)
        return set_bool(p, object, text, err);
    if (p->kind == PARAM_ENUM)
        return set_enum(p, object, text, err);
    if (p->kind != PARAM_TEXT)
        return set_number(p, object, text, err);
    if (strlen(text) >= p->room)
        return err_set(err, ERR_INVALID, p->name, "is longer than %zu bytes", p->room - 1);
    if (*text && p->check && p->check(text, err) < 0) {
        if (err)
            snprintf(err->member, sizeof err->member, "%s", p->name);
        return -1;
    }
    char *to = member_of(p, object);
    memset(to, 0, p->room);
    memcpy(to, text, strlen(text));
    return 0;
}

int param_set_query(const struct param *p, void *object, const char *text, struct err *err)
{
    double d;
    bool number = p->kind == PARAM_INT || p->kind == PARAM_REAL;
    return number && !str_to_double(text, &d) ? no_number(p, text, false, err)
                                              : param_set_text(p, object, text, err);
}

int param_set_json(const struct param *p, void *object, const struct json *value, struct err *err)
{
    bool flag;
    int64_t whole;
    double real;
    char text[40];
    if (json_bool(value, &flag)) {
        if (p->kind != PARAM_BOOL)
            return err_set(err, ERR_INVALID, p->name, "must not be true or false");
        return param_set_text(p, object, flag ? "true" : "false", err);
    }
    if (p->kind == PARAM_BOOL)
        return err_set(err, ERR_INVALID, p->name, "must be true or false");
    if (json_text(value)) {
        if (p->kind == PARAM_INT || p->kind == PARAM_REAL)
            return err_set(err, ERR_INVALID, p->name, "must be a number, not a string");
        return param_set_text(p, object, json_text(value), err);
    }
    if (json_i64(value, &whole) && p->kind != PARAM_ENUM) {
        snprintf(text, sizeof text, "%" PRId64, whole);
        return param_set_text(p, object, text, err);
    }
    if (json_number(value, &real) && p->kind == PARAM_REAL) {
        snprintf(text, sizeof text, "%.17g", real);
        return param_set_text(p, object, text, err);
    }
    return err_set(err, ERR_INVALID, p->name, "must be %s",
                   p->kind == PARAM_INT    ? "a whole number"
                   : p->kind == PARAM_REAL ? "a number"
                                           : "a string");
}

void param_get_text(const struct param *p, const void *object, char *out, size_t room)
{
    const void *m = member_at(p, object);
    switch (p->kind) {
    case PARAM_BOOL:
        snprintf(out, room, "%s", *(const bool *)m ? "true" : "false");
        break;
    case PARAM_INT:
        snprintf(out, room, "%" PRId64, *(const int64_t *)m);
        break;
    case PARAM_REAL:
        snprintf(out, room, "%.15g", *(const double *)m);
        break;
    case PARAM_BYTES:
        str_from_bytes(*(const uint64_t *)m, out, room);
        break;
    case PARAM_ENUM:
        snprintf(out, room, "%s", p->choices[*(const int *)m]);
        break;
    case PARAM_TEXT:
        snprintf(out, room, "%s", (const char *)m);
        break;
    }
}

void param_write_value(const struct param *p, const void *object, struct jsonw *w)
{
    const void *m = member_at(p, object);
    if (p->kind == PARAM_BOOL) {
        jsonw_bool(w, p->name, *(const bool *)m);
    } else if (p->kind == PARAM_INT) {
        jsonw_i64(w, p->name, *(const int64_t *)m);
    } else if (p->kind == PARAM_BYTES) {
        jsonw_i64(w, p->name, (int64_t) * (const uint64_t *)m);
    } else if (p->kind == PARAM_REAL) {
        jsonw_fixed(w, p->name, *(const double *)m, 6);
    } else if (p->kind == PARAM_ENUM) {
        jsonw_text(w, p->name, p->choices[*(const int *)m]);
    } else {
        jsonw_text(w, p->name, m);
    }
}

static const char *const kind_names[] = {
    [PARAM_BOOL] = "boolean", [PARAM_INT] = "integer", [PARAM_REAL] = "number",
    [PARAM_BYTES] = "bytes",  [PARAM_ENUM] = "choice", [PARAM_TEXT] = "text",
};

void param_write_catalogue(const struct param *p, struct jsonw *w)
{
    bool ranged = p->kind == PARAM_INT || p->kind == PARAM_REAL || p->kind == PARAM_BYTES;
    jsonw_object(w, NULL);
    jsonw_text(w, "name", p->name);
    jsonw_text(w, "kind", kind_names[p->kind]);
    jsonw_text(w, "default", p->def);
    if (p->unit)
        jsonw_text(w, "unit", p->unit);
    if (ranged) {
        jsonw_fixed(w, "min", p->min, 3);
        jsonw_fixed(w, "max", p->max, 3);
    }
    if (p->kind == PARAM_TEXT)
        jsonw_i64(w, "max_length", (int64_t)p->room - 1);
    if (p->choices) {
        jsonw_array(w, "choices");
        for (int i = 0; p->choices[i]; i++)
            jsonw_text(w, NULL, p->choices[i]);
        jsonw_end(w);
    }
    jsonw_text(w, "help", p->help);
    jsonw_end(w);
}

// Lines after the first begin with `lead` and blanks up to `indent`.
static void print_wrapped(FILE *out, const char *text, const char *lead, int indent, int width)
{
    int column = indent;
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (column > indent && column + 1 + word > width) {
            fprintf(out, "\n%-*s", indent, lead);
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", word, text);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

void param_print_paragraph(const char *text, FILE *out)
{
    print_wrapped(out, text, "", 0, 80);
}

enum { METAVAR_ROOM = 32 };
static const char *metavar_of(const struct param *p, char room[static METAVAR_ROOM])
{
    static const char *const metavars[] = {
        [PARAM_BOOL] = "",      [PARAM_INT] = "N",     [PARAM_REAL] = "X",
        [PARAM_BYTES] = "SIZE", [PARAM_TEXT] = "TEXT", [PARAM_ENUM] = "",
    };
    if (p->metavar || !is_time(p))
        return p->metavar ? p->metavar : metavars[p->kind];
    snprintf(room, METAVAR_ROOM, "N[%s]", time_units(0, "|", "|").text);
    return room;
}

void param_print_help(const struct param_table *t, FILE *out)
{
    for (int i = 0; i < t->n; i++) {
        const struct param *p = &t->params[i];
        char head[200], option[PARAM_OPTION_ROOM], room[METAVAR_ROOM];
        int n = snprintf(head, sizeof head, "  --%s", param_option(p, option));
        const char *metavar = metavar_of(p, room);
        if (p->kind == PARAM_ENUM) {
            for (int k = 0; p->choices[k] && n < (int)sizeof head - 20; k++)
                n += snprintf(head + n, sizeof head - (size_t)n, "%c%s", k ? '|' : '=',
                              p->choices[k]);
        } else if (*metavar) {
            n += snprintf(head + n, sizeof head - (size_t)n, p->implied ? "[=%s]" : "=%s", metavar);
        }
        fprintf(out, n > 26 ? "%s\n%*s" : "%-28s%*s", head, n > 26 ? 28 : 0, "");
        char whole[700];
        bool show = *p->def && p->kind != PARAM_BOOL;
        snprintf(whole, sizeof whole, "%s%s%s%s%s%s", p->help, show ? " [" : "", show ? p->def : "",
                 show && p->unit ? " " : "", show && p->unit ? p->unit : "", show ? "]" : "");
        print_wrapped(out, whole, "", 28, 80);
    }
}

// --- Command lines -----------------------------------------------------------------------------

// The words of a command line, the one looked at, and what is read from it.
struct words {
    char **argv;
    int argc, at;
    char name[64];     // as typed, without "--"; of a letter the parameter's
    const char *value; // NULL: none yet
    const struct param *param;
    void *object;
    bool filled;                // of the table that has `param`
    const struct param *joined; // the last one with `joins` that was given
    struct param_given *given;  // NULL: what was given does not matter
};

// "--name=value" or "--name". A name that is too long is cut: nothing is called so.
static void split_option(struct words *w)
{
    const char *word = w->argv[w->at] + 2, *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    snprintf(w->name, sizeof w->name, "%.*s", (int)n, word);
    w->value = equals ? equals + 1 : NULL;
}

static bool find_name(const struct param_args *a, struct words *w, const char *name)
{
    w->param = NULL;
    for (int i = 0; i < a->n_targets && !w->param; i++) {
        w->param = param_find_option(a->targets[i].table, name);
        w->object = a->targets[i].object;
        w->filled = a->targets[i].filled;
    }
    return w->param != NULL;
}

static bool find_option(const struct param_args *a, struct words *w)
{
    split_option(w);
    if (find_name(a, w, w->name)) {
        if (w->param->kind == PARAM_BOOL && !w->value)
            w->value = "true";
        return true;
    }
    if (w->value || !str_starts(w->name, "no-") || !find_name(a, w, w->name + 3))
        return false;
    if (w->param->kind == PARAM_BOOL)
        w->value = "false";
    return w->value != NULL;
}

// "-ovalue" or "-o".
static bool find_letter(const struct param_args *a, struct words *w)
{
    const char *word = w->argv[w->at];
    for (int i = 0; i < a->n_targets; i++)
        for (int k = 0; k < a->targets[i].table->n; k++) {
            const struct param *p = &a->targets[i].table->params[k];
            if (!p->letter || p->letter != word[1])
                continue;
            snprintf(w->name, sizeof w->name, "%s", p->name);
            w->param = p;
            w->object = a->targets[i].object;
            w->filled = a->targets[i].filled;
            w->value = word[2] ? word + 2 : p->kind == PARAM_BOOL ? "true" : NULL;
            return true;
        }
    return false;
}

static bool was_given(struct param_given *g, const struct param *p)
{
    for (int i = 0; i < g->n; i++)
        if (g->list[i] == p)
            return true;
    if (g->n < PARAM_GIVEN_MAX)
        g->list[g->n++] = p;
    return false;
}

// Sets one whose value may not change if it was given before.
static int set_once(const struct words *w, const char *value, struct err *err)
{
    enum { SHOWN = 60 };
    const struct param *p = w->param;
    char before[PARAM_LINE_MAX], after[PARAM_LINE_MAX];
    bool again = w->given && p->kind != PARAM_BOOL && !p->joins && was_given(w->given, p);
    const char *text = p->kind == PARAM_TEXT ? (const char *)w->object + p->offset : NULL;
    bool differs = text && strcmp(text, value) != 0; // behind what is shown too
    param_get_text(p, w->object, before, sizeof before);
    if (param_set_text(p, w->object, value, err) < 0)
        return -1;
    param_get_text(p, w->object, after, sizeof after);
    return again && (differs || strcmp(before, after) != 0)
               ? err_set(err, ERR_USAGE, w->name,
                         "is given twice, with %.*s and %.*s: give it once", SHOWN, before, SHOWN,
                         after)
               : 0;
}

static int set_option(struct words *w, struct err *err)
{
    if (!w->value)
        w->value = w->param->implied;
    if (!w->value && w->at + 1 < w->argc)
        w->value = w->argv[++w->at];
    if (!w->value)
        return err_set(err, ERR_USAGE, w->name, "--%s needs a value", w->name);
    bool filled = w->param->filled || (w->filled && w->param->kind == PARAM_TEXT);
    if (filled && !*w->value)
        return err_set(err, ERR_USAGE, w->name, "--%s must not be empty", w->name);
    CLEANUP_BUF struct buf both = BUF_INIT;
    if (w->param->joins && w->joined == w->param)
        buf_fmt(&both, "%s%c", (const char *)w->object + w->param->offset, w->param->joins);
    w->joined = w->param->joins ? w->param : w->joined;
    buf_str(&both, w->value);
    if (!buf_ok(&both))
        return err_set(err, ERR_NO_MEMORY, w->name, "no memory for --%s", w->name);
    if (set_once(w, buf_text(&both), err) == 0)
        return 0;
    if (err)
        err->code = ERR_USAGE;
    return err_prefix(err, "--%s", w->name);
}

static int param_other_option(const struct param_args *a, const struct words *w, struct err *err)
{
    int taken = a->other ? a->other(a->context, w->name, w->value, err) : 0;
    if (taken)
        return taken;
    struct suggestion near = SUGGESTION_FOR(w->name);
    char option[PARAM_OPTION_ROOM], text[SUGGEST_TEXT_ROOM];
    for (int i = 0; i < a->n_targets; i++)
        for (int k = 0; k < a->targets[i].table->n; k++)
            suggest_consider(&near, param_option(&a->targets[i].table->params[k], option));
    return err_set(err, ERR_USAGE, w->name, "unknown option --%s%s (see --help)", w->name,
                   suggest_text(&near, "--", text, sizeof text));
}

static int take_operand(struct param_args *a, char *word, struct err *err)
{
    if (a->n == a->most)
        return err_set(err, ERR_USAGE, "", "one word too many: \"%.60s\"", word);
    a->operands[a->n++] = word;
    return 0;
}

// 1: taken, 0: the options end here, -1: error.
static int take_word(struct param_args *a, struct words *w, struct err *err)
{
    char *word = w->argv[w->at];
    bool dashed = word[0] == '-' && word[1], named = dashed && word[1] == '-';
    if (named ? find_option(a, w) : dashed && find_letter(a, w))
        return set_option(w, err) < 0 ? -1 : 1;
    if (named)
        return param_other_option(a, w, err);
    if (!a->operands)
        return 0;
    if (dashed)
        return err_set(err, ERR_USAGE, "", "unknown option %s (see --help)", word);
    return take_operand(a, word, err) < 0 ? -1 : 1;
}

int param_parse_args(struct param_args *a, int argc, char **argv, int *next, struct err *err)
{
    struct words w = {.argv = argv, .argc = argc, .at = *next, .given = a->given};
    int taken = 1;
    a->n = 0;
    for (; w.at < argc && strcmp(argv[w.at], "--") != 0; w.at++)
        if ((taken = take_word(a, &w, err)) <= 0)
            break;
    if (taken < 0)
        return -1;
    w.at += taken && w.at < argc; // "--"
    for (; a->operands && w.at < argc; w.at++)
        if (take_operand(a, argv[w.at], err) < 0)
            return -1;
    *next = w.at;
    return 0;
}

// A line per word: together they may be longer than a line of a file may be.
static void print_each_word(const struct param *p, const char *text, FILE *out)
{
    for (size_t n; *(text += strspn(text, " ")); text += n) {
        n = strcspn(text, " ");
        fprintf(out, "%s = %.*s\n", p->name, (int)n, text);
    }
}

void param_print_file(const struct param_table *t, const void *object, const void *defaults,
                      FILE *out)
{
    for (int i = 0; i < t->n; i++) {
        const struct param *p = &t->params[i];
        const bool text = p->kind == PARAM_TEXT;
        char number[64], def[64], whole[900], choices[200] = "";
        const char *now = text ? member_at(p, object) : number;
        const char *usual = text ? member_at(p, defaults) : def;
        for (int k = 0; p->kind == PARAM_ENUM && p->choices[k]; k++) {
            size_t used = strlen(choices);
            snprintf(choices + used, sizeof choices - used, "%s%s", k ? ", " : " One of ",
                     p->choices[k]);
        }
        if (!text) {
            param_get_text(p, object, number, sizeof number);
            param_get_text(p, defaults, def, sizeof def);
        }
        snprintf(whole, sizeof whole, "%s%s%s%s", p->help, choices, *choices ? "." : "",
                 p->live ? " A reload is enough." : "");
        fputs("\n# ", out);
        print_wrapped(out, whole, "# ", 2, 100);
        if (p->joins == ' ' && *now) {
            print_each_word(p, now, out);
            continue;
        }
        fprintf(out, "%s%s =%s%s\n", strcmp(now, usual) == 0 ? "#" : "", p->name, *now ? " " : "",
                now);
    }
}

static char *param_trim(char *s)
{
    s += strspn(s, " \t");
    size_t n = strlen(s);
    while (n && strchr(" \t\r", s[n - 1]))
        s[--n] = '\0';
    return s;
}

// 1: a line without its end, 0: there is none, -1: why it is none.
static int param_next_line(FILE *f, char line[static PARAM_LINE_MAX + 1], struct err *err)
{
    size_t n = 0;
    int c;
    while ((c = getc(f)) != EOF && c != '\n') {
        if (n == PARAM_LINE_MAX)
            return err_set(err, ERR_USAGE, "", "the line is longer than %d bytes", PARAM_LINE_MAX);
        line[n++] = (char)c;
    }
    if (ferror(f))
        return err_sys(err, "cannot be read");
    line[n] = '\0';
    n -= n && line[n - 1] == '\r';
    const char *control = str_control(line, n);
    if (control)
        return err_set(err, ERR_USAGE, "", "the line has %s", str_control_name(control).text);
    if (!str_utf8_valid(line, n))
        return err_set(err, ERR_USAGE, "", "the line is not UTF-8");
    return c != EOF || n > 0;
}

static int read_setting(char *line, param_set_fn *set, void *ctx, struct err *err)
{
    char *text = param_trim(line), *equals = strchr(text, '=');
    if (!*text || *text == '#')
        return 0;
    if (!equals)
        return err_set(err, ERR_USAGE, "", "must be \"name = value\"");
    *equals = '\0';
    return set(ctx, param_trim(text), param_trim(equals + 1), err);
}

int param_read_file(FILE *f, param_set_fn *set, void *ctx, int *line, struct err *err)
{
    char text[PARAM_LINE_MAX + 1];
    int more = 1;
    for (*line = 1; (more = param_next_line(f, text, err)) > 0; ++*line) {
        size_t mark = *line == 1 ? str_mark(text, strlen(text)) : 0;
        if (read_setting(text + mark, set, ctx, err) < 0)
            return -1;
    }
    return more;
}

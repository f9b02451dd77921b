// SPDX-License-Identifier: Apache-2.0
// One table after the other is searched; the first that has the name gets the value.
#include "base/settings.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/suggest.h"

void settings_defaults(const struct param_target *targets, int n)
{
    for (int i = 0; i < n; i++)
        param_defaults(targets[i].table, targets[i].object);
}

struct settings_targets {
    const struct param_target *list;
    int n;
    int line;   // that is read
    int *lines; // of each setting of all tables, in their order: where this file has set it; 0: not
};

// Like the options of a command line, the lines of a file are joined where the table says so.
static int set_or_join(struct settings_targets *t, const struct param *p, void *object, int *before,
                       const char *value, struct err *err)
{
    CLEANUP_BUF struct buf both = BUF_INIT;
    if (*before && !p->joins)
        return err_set(err, ERR_USAGE, p->name, "stands in line %d already; keep one of them",
                       *before);
    if (*before)
        buf_fmt(&both, "%s%c", (const char *)object + p->offset, p->joins);
    *before = t->line;
    buf_str(&both, value);
    if (!buf_ok(&both))
        return err_set(err, ERR_NO_MEMORY, p->name, "no memory for %s", p->name);
    return param_set_text(p, object, buf_text(&both), err);
}

static int unknown_setting(const struct settings_targets *t, const char *name, struct err *err)
{
    struct suggestion near = SUGGESTION_FOR(name);
    char text[SUGGEST_TEXT_ROOM];
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->list[i].table->n; k++)
            suggest_consider(&near, t->list[i].table->params[k].name);
    return err_set(err, ERR_USAGE, name, "there is no setting \"%.40s\"%s", name,
                   suggest_text(&near, "", text, sizeof text));
}

static int set_one(void *ctx, const char *name, const char *value, struct err *err)
{
    struct settings_targets *t = ctx;
    int *lines = t->lines;
    for (int i = 0; i < t->n; lines += t->list[i].table->n, i++) {
        const struct param *p = param_find(t->list[i].table, name);
        if (!p)
            p = param_find_option(t->list[i].table, name);
        if (p)
            return set_or_join(t, p, t->list[i].object, &lines[p - t->list[i].table->params], value,
                               err) < 0
                       ? err_prefix(err, "%s", name)
                       : 0;
    }
    return unknown_setting(t, name, err);
}

static int settings_read_lines(struct settings_targets *t, FILE *f, const char *path,
                               struct err *err)
{
    int n = 0;
    for (int i = 0; i < t->n; i++)
        n += t->list[i].table->n;
    CLEANUP_MEM int *lines = calloc((size_t)n + 1, sizeof *lines);
    t->lines = lines;
    if (!lines)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the settings");
    return param_read_file(f, set_one, t, &t->line, err) < 0
               ? err_prefix(err, "%s:%d", path, t->line)
               : 0;
}

int settings_read_file(const struct param_target *targets, int n, const char *path, bool optional,
                       struct err *err)
{
    struct settings_targets t = {.list = targets, .n = n};
    struct stat st;
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    // A file in a folder that we may not enter is none of ours: HOME may be another account's.
    if (fd < 0 && optional && (errno == ENOENT || errno == ENOTDIR || access(path, F_OK) < 0))
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, "cannot read %s", path);
    if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) // /dev/null may
        return err_set(err, ERR_USAGE, "config", "cannot read %s: it is not a file", path);
    CLEANUP_FILE FILE *f = fdopen(fd, "r");
    if (!f)
        return err_sys(err, "cannot read %s", path);
    fd = -1;
    return settings_read_lines(&t, f, path, err);
}

static const char *settings_variable(const struct param *p, const char *prefix, char *out,
                                     size_t room)
{
    snprintf(out, room, "%s%s", prefix, p->name);
    for (char *c = out; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return out;
}

static int read_variable(const struct param *p, void *object, const char *prefix, bool keep_empty,
                         struct err *err)
{
    char name[80];
    const char *value = getenv(settings_variable(p, prefix, name, sizeof name));
    if (!value || (!*value && !keep_empty))
        return 0;
    return param_set_text(p, object, value, err) < 0 ? err_prefix(err, "%s", name) : 0;
}

int settings_read_environment(const struct param_target *targets, int n, const char *prefix,
                              bool keep_empty, struct err *err)
{
    for (int t = 0; t < n; t++)
        for (int i = 0; i < targets[t].table->n; i++)
            if (read_variable(&targets[t].table->params[i], targets[t].object, prefix, keep_empty,
                              err) < 0)
                return -1;
    return 0;
}

// ---- Programs -----------------------------------------------------------------------------------

static const struct param action_params[] = {
    {.name = "check_config",
     .kind = PARAM_BOOL,
     .def = "false",
     .help =
         "Check the configuration and exit; status 2 if it has an error. What a start would only "
         "log is a warning."},
    {.name = "print_config",
     .kind = PARAM_BOOL,
     .def = "false",
     .help = "Print the configuration as a file, with defaults as comments, and exit."},
    {.name = "version", .kind = PARAM_BOOL, .def = "false", .help = "Print the version and exit."},
    {.name = "help", .kind = PARAM_BOOL, .def = "false", .help = "Print this text and exit."},
};
const struct param_table settings_actions = {action_params, COUNT_OF(action_params)};

struct settings_line {
    const struct settings_program *program;
    const char *file; // of --config, in argv; NULL: not given
    enum settings_action *action;
};

static int other_option(void *ctx, const char *option, const char *value, struct err *err)
{
    static const char *const words[SETTINGS_OWN + 1] = {[SETTINGS_HELP] = "help",
                                                        [SETTINGS_VERSION] = "version",
                                                        [SETTINGS_ROUTES] = "routes",
                                                        [SETTINGS_PRINT] = "print-config",
                                                        [SETTINGS_CHECK] = "check-config"};
    struct settings_line *line = ctx;
    if (strcmp(option, "config") == 0) {
        if (!value || !*value)
            return err_set(err, ERR_USAGE, "config", "write it as --config=FILE");
        line->file = value;
        return 1;
    }
    const struct settings_program *p = line->program;
    if (p->own_with && value && strcmp(option, p->own_with) == 0) {
        *p->own_text = value;
        *line->action = SETTINGS_OWN_WITH;
        return 1;
    }
    for (int i = SETTINGS_HELP; i <= SETTINGS_OWN; i++) {
        const char *word = i == SETTINGS_OWN ? p->own : words[i];
        if (word && strcmp(option, word) == 0 && !value) {
            *line->action = (enum settings_action)i;
            return 1;
        }
    }
    return 0;
}

static int read_options(struct settings_line *line, int argc, char **argv, struct err *err)
{
    struct param_args args = {.targets = line->program->targets,
                              .n_targets = line->program->n,
                              .other = other_option,
                              .context = line};
    int next = 1;
    if (param_parse_args(&args, argc, argv, &next, err) < 0)
        return -1;
    return next == argc
               ? 0
               : err_set(err, ERR_USAGE, "", "unexpected word \"%.60s\" (see --help)", argv[next]);
}

// What no file of settings could hold, an option and a variable must not bring either: it would be
// logged, and printed as other settings.
static int check_texts(const struct settings_program *program, struct err *err)
{
    for (int t = 0; t < program->n; t++)
        for (int i = 0; i < program->targets[t].table->n; i++) {
            const struct param *p = &program->targets[t].table->params[i];
            const char *text = (const char *)program->targets[t].object + p->offset;
            size_t n = p->kind == PARAM_TEXT ? strlen(text) : 0;
            const char *control = str_control(text, n);
            if (control)
                return err_set(err, ERR_USAGE, p->name, "%s has %s", p->name,
                               str_control_name(control).text);
            if (!str_utf8_valid(text, n))
                return err_set(err, ERR_USAGE, p->name, "%s is not UTF-8", p->name);
        }
    return 0;
}

int settings_read(const struct settings_program *p, int argc, char **argv,
                  enum settings_action *action, struct err *err)
{
    struct settings_line line = {p, NULL, action};
    *action = SETTINGS_RUN;
    settings_defaults(p->targets, p->n);
    // Once for --config and errors of usage, then again over the file and the environment.
    if (read_options(&line, argc, argv, err) < 0)
        return -1;
    if (!settings_are_used(*action))
        return 0;
    settings_defaults(p->targets, p->n);
    if (settings_read_file(p->targets, p->n, line.file ? line.file : p->file, !line.file, err) <
            0 ||
        settings_read_environment(p->targets, p->n, p->prefix, true, err) < 0)
        return -1;
    if (read_options(&line, argc, argv, err) < 0)
        return -1;
    return check_texts(p, err) < 0 ? settings_at_fault(p, argc, argv, err) : 0;
}

// ---- Where a setting was set --------------------------------------------------------------------

struct settings_search {
    const struct param *wanted;
    int line, found; // of the file; found 0: in no line
};

// "keep-days" and "keep_days".
static bool is_word_of(const struct param *p, const char *name)
{
    return param_find_option(&(struct param_table){p, 1}, name);
}

static bool is_option_of(const struct param *p, const char *word)
{
    char name[PARAM_OPTION_ROOM];
    if (!str_starts(word, "--"))
        return false;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    return is_word_of(p, name) || (str_starts(name, "no-") && is_word_of(p, name + 3));
}

static int search_line(void *ctx, const char *name, const char *value, struct err *err)
{
    struct settings_search *s = ctx;
    (void)value;
    (void)err;
    if (strcmp(name, s->wanted->name) == 0 || is_word_of(s->wanted, name))
        s->found = s->line;
    return 0;
}

static int search_file(struct settings_search *s, const char *path)
{
    CLEANUP_FILE FILE *f = fopen(path, "re");
    struct err ignored;
    if (f)
        param_read_file(f, search_line, s, &s->line, &ignored);
    return s->found;
}

static const struct param *search_param(const struct settings_program *p, const char *name)
{
    const struct param *found = NULL;
    for (int i = 0; i < p->n && !found; i++)
        found = param_find(p->targets[i].table, name);
    return found;
}

int settings_at_fault(const struct settings_program *p, int argc, char **argv, struct err *err)
{
    struct settings_search s = {.wanted = search_param(p, err->member)};
    const char *path = p->file;
    char variable[80];
    if (!s.wanted)
        return -1;
    for (int i = 1; i < argc; i++) {
        if (str_starts(argv[i], "--config="))
            path = argv[i] + strlen("--config=");
        if (is_option_of(s.wanted, argv[i]))
            return -1;
    }
    if (getenv(settings_variable(s.wanted, p->prefix, variable, sizeof variable)))
        return err_prefix(err, "%s", variable);
    return search_file(&s, path) ? err_prefix(err, "%s:%d", path, s.found) : -1;
}

// ---- Reading again ------------------------------------------------------------------------------

struct setting_text {
    char room[64];
    const char *text;
};

static const char *setting_text(struct setting_text *t, const struct param *p, const void *object)
{
    t->text = p->kind == PARAM_TEXT ? (const char *)object + p->offset : t->room;
    if (p->kind != PARAM_TEXT)
        param_get_text(p, object, t->room, sizeof t->room);
    return t->text;
}

void settings_compare(const struct param_target *in_use, const struct param_target *wanted, int n,
                      settings_changed *changed, void *ctx)
{
    struct setting_text before, after;
    for (int t = 0; t < n; t++)
        for (int i = 0; i < in_use[t].table->n; i++) {
            const struct param *p = &in_use[t].table->params[i];
            if (strcmp(setting_text(&before, p, in_use[t].object),
                       setting_text(&after, p, wanted[t].object)) != 0)
                changed(ctx, p, before.text, after.text);
        }
}

int settings_take_live(const struct param_target *in_use, const struct param_target *wanted, int n,
                       struct err *err)
{
    struct setting_text text;
    for (int t = 0; t < n; t++)
        for (int i = 0; i < in_use[t].table->n; i++) {
            const struct param *p = &in_use[t].table->params[i];
            if (p->live && param_set_text(p, in_use[t].object,
                                          setting_text(&text, p, wanted[t].object), err) < 0)
                return -1;
        }
    return 0;
}

void settings_warn(const struct settings_program *p, int argc, char **argv, struct err *why)
{
    settings_at_fault(p, argc, argv, why);
    fprintf(stderr, "%s: warning: %s\n", p->name, why->text);
}

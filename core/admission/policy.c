// SPDX-License-Identifier: Apache-2.0
// The table of blockers (model/blockers.h) as kinds with their units and times to retry, and as the
// options that set action and limit of each. Help and the configuration file come from these.
#include "core/admission/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

static const char *const policy_action_names[] = {"ignore", "warn", "refuse", NULL};

const struct admission_kind_info admission_kinds[ADMISSION_KINDS] = {
#define ADMISSION_INFO(x, id, name, severity, unit, retry, ...) [ADMIT_##id] = {name, unit, retry},
    BLOCKERS_CONFIGURED(ADMISSION_INFO, ) BLOCKERS_ALWAYS(ADMISSION_INFO, )
#undef ADMISSION_INFO
};

#define ROOM(member) sizeof(((struct policy *)NULL)->member)

static const struct param params[] = {
    [POLICY_KINDS] = {.name = "hours",
                      .kind = PARAM_TEXT,
                      .offset = offsetof(struct policy, hours_text),
                      .room = ROOM(hours_text),
                      .def = "",
                      .live = true,
                      .metavar = "SPANS",
                      .help = "Local time in which runs can start, such as \"20:00-06:00\" or "
                              "\"Mon-Fri 20:00-06:00, Sat-Sun 00:00-24:00\". Empty: always."},
    {.name = "admission",
     .kind = PARAM_ENUM,
     .offset = offsetof(struct policy, strongest),
     .choices = policy_action_names,
     .live = true,
     .def = "refuse",
     .help =
         "Strongest action of all --admit options. warn: runs start, and conditions are recorded. "
         "ignore: nothing is checked. Too little memory always refuses a run."},
    {.name = "host_lock",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct policy, host_lock),
     .room = ROOM(host_lock),
     .def = "/run/lock/numaprobe.lock",
     .live = true,
     .metavar = "PATH",
     .help = "Lock file held during a run, so that daemons of one host take turns; or \"none\"."},
#define ADMISSION_OPTION(x, id, kind_name, severity, unit, retry, default_text, help_text)         \
    [ADMIT_##id] = {.name = "admit_" kind_name,                                                    \
                    .kind = PARAM_TEXT,                                                            \
                    .offset = offsetof(struct policy, text) + ADMIT_##id * ROOM(text[0]),          \
                    .room = ROOM(text[0]),                                                         \
                    .def = default_text,                                                           \
                    .live = true,                                                                  \
                    .metavar = "WHAT",                                                             \
                    .help = help_text},
    BLOCKERS_CONFIGURED(ADMISSION_OPTION, )
#undef ADMISSION_OPTION
};
const struct param_table policy_table = {params, COUNT_OF(params)};

// A limit that nothing is compared with would be taken for one.
static bool policy_has_limit(const struct param *p)
{
    return strchr(p->def, ':');
}

static int policy_bad(const struct param *p, const char *unit, const char *text, struct err *err)
{
    if (!policy_has_limit(p))
        return err_set(err, ERR_USAGE, p->name, "must be refuse, warn or ignore; got \"%.30s\"",
                       text);
    return err_set(err, ERR_USAGE, p->name,
                   "must be refuse, warn or ignore, with a limit%s%s if you like (%s); got "
                   "\"%.30s\"",
                   *unit ? " in " : "", unit, p->def, text);
}

static int read_action(const char *word, size_t n)
{
    for (int i = 0; policy_action_names[i]; i++)
        if (strlen(policy_action_names[i]) == n && strncmp(policy_action_names[i], word, n) == 0)
            return i;
    return -1;
}

static int read_rule(enum admission_kind kind, const char *text, struct policy_rule *rule,
                     struct err *err)
{
    const struct param *p = &params[kind];
    size_t n = strcspn(text, ":");
    int action = read_action(text, n);
    double limit = rule->limit;
    if (action < 0 ||
        (text[n] && (!policy_has_limit(p) || !str_to_double(text + n + 1, &limit) || limit < 0)))
        return policy_bad(p, admission_kinds[kind].unit, text, err);
    *rule = (struct policy_rule){(enum policy_action)action, limit};
    return 0;
}

int policy_finish(struct policy *p, struct err *err)
{
    struct policy_rule rule[ADMISSION_KINDS];
    struct hours hours;
    for (int i = 0; i < POLICY_KINDS; i++) {
        rule[i] = (struct policy_rule){0};
        if (read_rule((enum admission_kind)i, params[i].def, &rule[i], err) < 0 ||
            read_rule((enum admission_kind)i, p->text[i], &rule[i], err) < 0)
            return -1;
        if ((int)rule[i].action > p->strongest)
            rule[i].action = (enum policy_action)p->strongest;
    }
    for (int i = POLICY_KINDS; i < ADMISSION_KINDS; i++)
        rule[i] = (struct policy_rule){POLICY_REFUSE, 0};
    if (hours_parse(&hours, p->hours_text, err) < 0)
        return -1;
    if (*p->host_lock != '/' && strcmp(p->host_lock, "none") != 0)
        return err_set(err, ERR_USAGE, "host_lock", "must be an absolute path or \"none\"");
    memcpy(p->rule, rule, sizeof rule);
    p->hours = hours;
    return 0;
}

void policy_defaults(struct policy *p)
{
    *p = (struct policy){0};
    param_defaults(&policy_table, p);
    policy_finish(p, NULL);
}

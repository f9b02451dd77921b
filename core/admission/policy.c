// SPDX-License-Identifier: Apache-2.0
// Two tables: the kinds of conditions with their units and times to retry, and the options that set
// action and limit of each kind. Help and the configuration file come from them.
#include "core/admission/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

static const char *const policy_action_names[] = {"ignore", "warn", "refuse", NULL};

enum {
    RETRY_SOON_S = 10,   // what another process computes may end any moment
    RETRY_MINUTE_S = 60, // averages over a minute
    RETRY_JOB_S = 300,   // a batch job
};

const struct admission_kind_info admission_kinds[ADMISSION_KINDS] = {
    [ADMIT_BUSY] = {"busy_cpus", "%", RETRY_SOON_S},
    [ADMIT_LOAD] = {"load", "tasks/CPU", RETRY_MINUTE_S},
    [ADMIT_CPU_PRESSURE] = {"cpu_pressure", "%", RETRY_SOON_S},
    [ADMIT_MEMORY_PRESSURE] = {"memory_pressure", "%", RETRY_SOON_S},
    [ADMIT_BATCH_JOB] = {"batch_job", "jobs", RETRY_JOB_S},
    [ADMIT_PODS] = {"kubernetes_pods", "pods", RETRY_JOB_S},
    [ADMIT_INSTANCE] = {"other_instance", "", RETRY_MINUTE_S},
    [ADMIT_CPU_QUOTA] = {"cpu_quota", "%", 0},
    [ADMIT_FREQUENCY] = {"frequency_capped", "%", 0},
    [ADMIT_THROTTLED] = {"throttled", "", RETRY_MINUTE_S},
    [ADMIT_STEAL] = {"steal", "%", RETRY_MINUTE_S},
    [ADMIT_SWAP] = {"swap", "pages/s", RETRY_MINUTE_S},
    [ADMIT_HOURS] = {"outside_hours", "min", RETRY_MINUTE_S},
    [ADMIT_TOO_SOON] = {"too_soon", "s", RETRY_SOON_S},
    [ADMIT_DISTURBING] = {"disturbing", "%", 0},
    [ADMIT_NOT_LIVE] = {"topology_not_live", "", 0},
    [ADMIT_MEMORY] = {"memory", "bytes", RETRY_SOON_S},
    [ADMIT_CGROUP_MEMORY] = {"cgroup_memory", "bytes", RETRY_SOON_S},
    [ADMIT_RESERVED_PAGES] = {"reserved_pages", "bytes", RETRY_SOON_S},
    [ADMIT_CPUSET] = {"cpuset", "CPUs", 0},
    [ADMIT_MEMS] = {"mems", "nodes", 0},
};

#define KIND(id, kind_name, default_text, help_text)                                               \
    [id] = {.name = "admit_" kind_name,                                                            \
            .kind = PARAM_TEXT,                                                                    \
            .offset =                                                                              \
                offsetof(struct policy, text) + (id) * sizeof(((struct policy *)NULL)->text[0]),   \
            .room = sizeof(((struct policy *)NULL)->text[0]),                                      \
            .def = default_text,                                                                   \
            .live = true,                                                                          \
            .metavar = "WHAT",                                                                     \
            .help = help_text}
#define ROOM(member) sizeof(((struct policy *)NULL)->member)

static const struct param params[] = {
    KIND(ADMIT_BUSY, "busy_cpus", "refuse:25",
         "Action and limit, such as refuse:25. Other processes compute on a CPU of the run or on "
         "its hyperthread, in % of one CPU."),
    KIND(ADMIT_LOAD, "load", "refuse:0.5",
         "1-minute load average per CPU, excluding numaprobe's own runs."),
    KIND(ADMIT_CPU_PRESSURE, "cpu_pressure", "refuse:20",
         "Share of the last 10 s in which a task waited for a CPU, in %."),
    KIND(ADMIT_MEMORY_PRESSURE, "memory_pressure", "refuse:5",
         "Share of the last 10 s in which a task waited for memory, in %."),
    KIND(ADMIT_BATCH_JOB, "batch_job", "refuse:0",
         "Number of jobs of Slurm, PBS, Torque or LSF on this node, without the daemon's own."),
    KIND(ADMIT_PODS, "kubernetes_pods", "refuse:0",
         "Number of Kubernetes pods on this node, without the daemon's own. Set the limit to the "
         "number of system pods."),
    KIND(ADMIT_INSTANCE, "other_instance", "refuse",
         "Another numaprobed is measuring on this host (see --host-lock)."),
    KIND(ADMIT_CPU_QUOTA, "cpu_quota", "refuse:100",
         "CPU quota of the cgroup, in % of what the ranks need; at least the limit."),
    KIND(ADMIT_FREQUENCY, "frequency_capped", "warn:90",
         "Frequency cap, in % of the hardware's maximum; at least the limit."),
    KIND(ADMIT_THROTTLED, "throttled", "refuse:0", "Number of thermal throttling events."),
    KIND(ADMIT_STEAL, "steal", "refuse:5", "CPU time taken by the hypervisor (steal), in %."),
    KIND(ADMIT_SWAP, "swap", "refuse:10", "Pages swapped in and out per second."),
    KIND(ADMIT_HOURS, "outside_hours", "refuse", "The time is outside --hours."),
    KIND(ADMIT_TOO_SOON, "too_soon", "refuse:0", "Minimum time between two runs, in seconds."),
    KIND(ADMIT_DISTURBING, "disturbing", "refuse:25",
         "Additional waiting of other processes for CPU or memory during the run, in % of the "
         "time. refuse ends the run, warn records the condition."),
    {.name = "hours",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct policy, hours_text),
     .room = ROOM(hours_text),
     .def = "",
     .live = true,
     .metavar = "SPANS",
     .help =
         "Local time in which runs can start, such as \"20:00-06:00\" or \"Mon-Fri 20:00-06:00, "
         "Sat-Sun 00:00-24:00\". Empty: always."},
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
};
const struct param_table policy_table = {params, COUNT_OF(params)};

static int policy_bad(const struct param *p, const char *text, struct err *err)
{
    return err_set(err, ERR_USAGE, p->name,
                   "must be refuse, warn or ignore, with a limit if you like (refuse:20); got "
                   "\"%.30s\"",
                   text);
}

static int read_action(const char *word, size_t n)
{
    for (int i = 0; policy_action_names[i]; i++)
        if (strlen(policy_action_names[i]) == n && strncmp(policy_action_names[i], word, n) == 0)
            return i;
    return -1;
}

static int read_rule(const struct param *p, const char *text, struct policy_rule *rule,
                     struct err *err)
{
    size_t n = strcspn(text, ":");
    int action = read_action(text, n);
    double limit = rule->limit;
    if (action < 0 || (text[n] && (!str_to_double(text + n + 1, &limit) || limit < 0)))
        return policy_bad(p, text, err);
    *rule = (struct policy_rule){(enum policy_action)action, limit};
    return 0;
}

int policy_finish(struct policy *p, struct err *err)
{
    struct policy_rule rule[ADMISSION_KINDS];
    struct hours hours;
    for (int i = 0; i < POLICY_KINDS; i++) {
        rule[i] = (struct policy_rule){0};
        if (read_rule(&params[i], params[i].def, &rule[i], err) < 0 ||
            read_rule(&params[i], p->text[i], &rule[i], err) < 0)
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

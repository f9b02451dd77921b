// SPDX-License-Identifier: Apache-2.0
// The decision: each check looks at one kind and compares one number with one limit.
#include "core/admission/checks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/str.h"
#include "model/target.h"

// What a rank needs besides its working set: the program, Open MPI's buffers and shared memory.
#define RANK_OVERHEAD_BYTES ((int64_t)64 << 20)

enum { FREQUENCY_SAMPLE = 32 }; // CPUs: two files of 10 us each

struct judge {
    const struct admission_input *in;
    struct admission *out;
};

// NULL: it is ignored.
__attribute__((format(printf, 5, 6))) static struct blocker *found(struct judge *j,
                                                                   enum admission_kind kind,
                                                                   double measured, double limit,
                                                                   const char *fmt, ...)
{
    struct admission *a = j->out;
    enum policy_action action = j->in->policy->rule[kind].action;
    bool forced = action == POLICY_REFUSE && j->in->force && kind < POLICY_KINDS;
    bool refuse = action == POLICY_REFUSE && !forced;
    int *n = refuse ? &a->n : &a->n_warnings;
    if (action == POLICY_IGNORE || *n == ADMISSION_BLOCKERS_MAX)
        return NULL;
    struct blocker *b = refuse ? &a->list[a->n++] : &a->warnings[a->n_warnings++];
    *b = (struct blocker){.kind = kind, .measured = measured, .limit = limit, .forced = forced};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b->text, sizeof b->text, fmt, ap);
    va_end(ap);
    if (refuse && admission_kinds[kind].retry_s > a->retry_after_s)
        a->retry_after_s = admission_kinds[kind].retry_s;
    return b;
}

static double limit_of(const struct judge *j, enum admission_kind kind)
{
    return j->in->policy->rule[kind].limit;
}

// --- memory: always refuses

// Of a rank: ordinary memory, and what is on reserved huge pages.
static int64_t ordinary_bytes(const struct plan *p, int rank)
{
    return (p->reserved_page_bytes ? 0 : plan_rank_bytes(p, rank)) + RANK_OVERHEAD_BYTES;
}

static int64_t reserved_bytes(const struct plan *p, int rank)
{
    return p->reserved_page_bytes ? plan_rank_bytes(p, rank) : 0;
}

// How many ranks have their memory on the node, and how much of a kind that is.
static int ranks_on(const struct judge *j, int node,
                    int64_t (*of_rank)(const struct plan *p, int rank), int64_t *bytes)
{
    const struct plan *p = j->in->plan;
    int n = 0;
    *bytes = 0;
    for (int i = 0; i < p->n_ranks; i++) {
        const struct plan_rank *r = &p->ranks[i];
        int target = r->mem_node < 0 ? r->cpu_node : r->mem_node;
        int64_t all = of_rank(p, i);
        if (!target_has(target, node))
            continue;
        *bytes += (int64_t)ceil((double)all * target_share(target, node, j->in->topology->weights));
        n++;
    }
    return n;
}

// CPUs that make a load beside the ranks. free(*ids)
static int loaders(const struct plan *p, int **ids)
{
    int n = 0;
    *ids = NULL;
    if (*p->load_cpus)
        str_to_ids(p->load_cpus, true, TOPOLOGY_CPUS_MAX, "", ids, &n, NULL);
    return n;
}

static int loaders_on(const struct judge *j, int node)
{
    CLEANUP_MEM int *ids = NULL;
    int all = loaders(j->in->plan, &ids), n = 0;
    for (int i = 0; i < all; i++) {
        const struct topo_cpu *cpu = topology_cpu(j->in->topology, ids[i]);
        n += cpu && cpu->node == node;
    }
    return n;
}

static int64_t target_bytes(const struct judge *j, int node)
{
    const struct plan *p = j->in->plan;
    double sum = 0, most = 0; // of those at once, and of those one after the other
    for (int i = 0; i < p->n_targets; i++) {
        double share = target_share(p->targets[i], node, j->in->topology->weights);
        if (i > p->n_targets - p->targets_at_once)
            sum += share;
        else
            most = fmax(most, share);
    }
    return (int64_t)ceil((sum + most) * (double)p->bytes_per_target);
}

static long long mib(double bytes)
{
    return (long long)(bytes / (1 << 20));
}

static void checks_check_node(struct judge *j, const struct topo_node *of)
{
    const struct plan *p = j->in->plan;
    int64_t ours;
    int node = of->os, n = ranks_on(j, node, ordinary_bytes, &ours),
        n_loaders = loaders_on(j, node);
    int64_t available = memory_node_available_bytes(j->in->root, node),
            all = memory_node_total_bytes(j->in->root, node);
    if (!j->in->now && all > available) // what a run of ours holds will be free again
        available = all;
    int64_t shared = p->reserved_page_bytes ? 0 : target_bytes(j, node);
    if ((!n && !shared && !n_loaders) || available < 0 ||
        of->memory_bytes == 0) // first touch: it is elsewhere
        return;
    double want = (double)ours + (double)shared + (double)n_loaders * (double)p->bytes_per_loader;
    double limit = (double)available * ADMISSION_MEMORY_SHARE;
    if (want <= limit)
        return;
    char each[40] = "", ranks[80] = "";
    if (p->bytes_per_rank && !p->reserved_page_bytes) // else a rank has none of its own there
        snprintf(each, sizeof each, " of up to %lld MiB", mib((double)p->bytes_per_rank));
    if (n)
        snprintf(ranks, sizeof ranks, "%d rank%s%s", n, str_plural(n), each);
    found(j, ADMIT_MEMORY, want, limit,
          "%s%s%s%s%s need %lld MiB on node %d; %lld MiB may be taken (%d %% of %s). Use a smaller "
          "size, fewer ranks or another node",
          ranks, n && shared ? " and " : "", shared ? "the arrays measured there" : "",
          (n || shared) && n_loaders ? " and " : "", n_loaders ? "those that make the load" : "",
          mib(want), node, mib(limit), (int)(ADMISSION_MEMORY_SHARE * 100),
          j->in->now ? "what is available" : "its memory");
}

// The reserved huge pages of a node are a pool of their own: all that are free may be taken.
static void checks_check_reserved(struct judge *j, int node)
{
    const struct plan *p = j->in->plan;
    int64_t page = p->reserved_page_bytes, ours;
    if (!page || !j->in->now)
        return;
    ranks_on(j, node, reserved_bytes, &ours);
    int64_t want = ours + target_bytes(j, node);
    int64_t room = memory_node_huge_bytes(j->in->root, node, (uint64_t)page);
    char size[24];
    str_from_bytes((uint64_t)page, size, sizeof size);
    if (want > 0 && room < 0)
        found(j, ADMIT_RESERVED_PAGES, (double)want, 0,
              "node %d has no reserved huge pages of %s: the kernel knows none of that size there",
              node, size);
    else if (want > 0 && want > room)
        found(j, ADMIT_RESERVED_PAGES, (double)want, (double)room,
              "%lld huge pages of %s are needed on node %d, %lld are free there. Reserve them in "
              "/sys/devices/system/node/node%d/hugepages/hugepages-%lldkB/nr_hugepages",
              (long long)((want + page - 1) / page), size, node, (long long)(room / page), node,
              (long long)(page >> 10));
}

int64_t admission_plan_bytes(const struct plan *p)
{
    CLEANUP_MEM int *ids = NULL;
    int64_t bytes = 0;
    for (int i = 0; i < p->n_ranks; i++)
        bytes += plan_rank_bytes(p, i) + RANK_OVERHEAD_BYTES;
    return bytes + p->targets_at_once * p->bytes_per_target +
           loaders(p, &ids) * p->bytes_per_loader;
}

// Its ranks are not in the job's cgroup, but take no more than the job was given.
static void check_job_memory(struct judge *j)
{
    const struct batch_place *within = j->in->within;
    double want = (double)admission_plan_bytes(j->in->plan);
    if (!within || within->memory_bytes < 0)
        return;
    double limit = (double)within->memory_bytes * ADMISSION_MEMORY_SHARE;
    if (want > limit)
        found(j, ADMIT_CGROUP_MEMORY, want, limit,
              "the run needs %lld MiB, and %lld MiB of its job may be taken (%d %% of the job's "
              "memory). Use a smaller size or fewer ranks, or request more memory for the job",
              mib(want), mib(limit), (int)(ADMISSION_MEMORY_SHARE * 100));
}

static void checks_check_memory(struct judge *j)
{
    const struct plan *p = j->in->plan;
    for (int i = 0; i < j->in->topology->n_nodes; i++) {
        checks_check_node(j, &j->in->topology->nodes[i]);
        checks_check_reserved(j, j->in->topology->nodes[i].os);
    }
    int64_t room = memory_cgroup_room_bytes(j->in->root);
    double want = (double)admission_plan_bytes(p), limit = (double)room * ADMISSION_MEMORY_SHARE;
    if (j->in->now && room >= 0 && want > limit)
        found(j, ADMIT_CGROUP_MEMORY, want, limit,
              "the run needs %lld MiB; the daemon's cgroup leaves %lld MiB. Raise "
              "MemoryMax= or use a smaller size",
              mib(want), mib(limit));
    check_job_memory(j);
}

static void check_live(struct judge *j)
{
    if (!j->in->topology->this_system)
        found(j, ADMIT_TOPOLOGY_NOT_LIVE, 0, 0,
              "the topology is not of this machine (%s): it can be shown, not probed",
              j->in->topology->source);
}

// --- what is allowed to us: it may have changed since the plan was made

static void check_cpuset(struct judge *j)
{
    const struct plan *p = j->in->plan;
    int missing = 0, first = -1;
    for (int i = 0; i < p->n_ranks; i++)
        if (!id_set_has(&j->in->now->cpus, p->ranks[i].cpu) && missing++ == 0)
            first = p->ranks[i].cpu;
    if (missing)
        found(j, ADMIT_CPUSET, missing, 0,
              "%d of the CPUs, such as %d, were taken out of the daemon's cpuset a moment ago; "
              "ask again, or name other cpus",
              missing, first);
}

static void check_mems(struct judge *j)
{
    const struct plan *p = j->in->plan;
    int missing = 0, last = -1;
    for (int i = 0; i < j->in->topology->n_nodes; i++) {
        int node = j->in->topology->nodes[i].os;
        bool needed = false;
        for (int r = 0; r < p->n_ranks && !needed; r++)
            needed = target_has(p->ranks[r].mem_node, node);
        for (int k = 0; k < p->n_targets && !needed; k++)
            needed = target_has(p->targets[k], node);
        if (needed && !id_set_has(&j->in->now->mems, node)) {
            missing++;
            last = node;
        }
    }
    if (missing)
        found(j, ADMIT_MEMS, missing, 0,
              "nodes of the plan, such as %d, were taken out of the daemon's cpuset (mems) a "
              "moment ago; ask again, or choose other nodes",
              last);
}

static void check_quota(struct judge *j)
{
    double quota = j->in->now->quota_cpus, need = j->in->plan->n_ranks;
    double share = need > 0 ? 100 * quota / need : 100, least = limit_of(j, ADMIT_CPU_QUOTA);
    if (quota >= 0 && share < least)
        found(j, ADMIT_CPU_QUOTA, share, least,
              "cgroups give the daemon the time of %.2f CPUs for %.0f ranks: they would be "
              "stopped during a sample. Remove CPUQuota= or use fewer ranks",
              quota, need);
}

// --- what others do

// CPUs of the run and the hardware threads beside them. `set` has TOPOLOGY_CPUS_MAX places.
static void mark_cpus(const struct judge *j, bool *set)
{
    const struct topology *t = j->in->topology;
    const struct plan *p = j->in->plan;
    CLEANUP_MEM int *load = NULL;
    int n = loaders(p, &load);
    for (int i = 0; i < p->n_ranks + n; i++) {
        int cpu = i < p->n_ranks ? p->ranks[i].cpu : load[i - p->n_ranks];
        const struct topo_cpu *of = topology_cpu(t, cpu);
        if (cpu >= 0 && cpu < TOPOLOGY_CPUS_MAX)
            set[cpu] = true;
        for (int k = 0; of && k < t->n_cpus; k++)
            if (t->cpus[k].core == of->core && t->cpus[k].os < TOPOLOGY_CPUS_MAX)
                set[t->cpus[k].os] = true;
    }
}

static double window_s(const struct admission_input *in)
{
    return (double)(in->now->at_ms - in->earlier->at_ms) / 1000;
}

// The CPU of the run that was busiest between the readings, in %; -1: not known.
static double busiest(const struct judge *j, const bool *set, int *which)
{
    const struct readings *a = j->in->earlier, *b = j->in->now;
    double most = READING_UNKNOWN;
    for (int i = 0; i < b->n_cpus && i < a->n_cpus; i++) {
        if (!set[i] || b->cpu[i].all <= a->cpu[i].all)
            continue;
        uint64_t ticks = b->cpu[i].all - a->cpu[i].all;
        double share = 100 * (double)(b->cpu[i].busy - a->cpu[i].busy) / (double)ticks;
        if (share > most) {
            most = share;
            *which = i;
        }
    }
    return most;
}

static bool check_window(struct judge *j, const bool *set)
{
    int cpu = -1;
    double limit = limit_of(j, ADMIT_BUSY_CPUS), share = busiest(j, set, &cpu);
    if (share <= limit)
        return false;
    found(j, ADMIT_BUSY_CPUS, share, limit,
          "CPU %d, of the run or beside a CPU of it, was busy %.0f %% of the last %.1f s", cpu,
          share, window_s(j->in));
    return true;
}

static void check_steal(struct judge *j)
{
    const struct readings *a = j->in->earlier, *b = j->in->now;
    uint64_t steal = 0, all = 0;
    for (int i = 0; a && i < b->n_cpus && i < a->n_cpus; i++)
        if (b->cpu[i].all > a->cpu[i].all) {
            steal += b->cpu[i].steal - a->cpu[i].steal;
            all += b->cpu[i].all - a->cpu[i].all;
        }
    double share = all ? 100 * (double)steal / (double)all : 0, limit = limit_of(j, ADMIT_STEAL);
    if (share > limit)
        found(j, ADMIT_STEAL, share, limit,
              "the hypervisor took %.1f %% of the CPUs' time in the last %.1f s", share,
              window_s(j->in));
}

static const struct busy_task *busy_here(const struct judge *j, const bool *set)
{
    for (int i = 0; i < j->in->now->n_busy; i++) {
        const struct busy_task *t = &j->in->now->busy[i];
        if (t->cpu >= 0 && t->cpu < TOPOLOGY_CPUS_MAX && set[t->cpu])
            return t;
    }
    return NULL;
}

// Where processes of others are hidden from us, the numbers that are left: more tasks want a CPU
// than there are CPUs without our run, and the load says that it is not for this moment only.
static void check_hidden(struct judge *j, const bool *set)
{
    const struct readings *r = j->in->now;
    int elsewhere = 0;
    for (int i = 0; i < j->in->topology->n_cpus; i++)
        elsewhere += !set[j->in->topology->cpus[i].os];
    int here = r->runnable - elsewhere;
    double load = r->load - j->in->own_load, share = 100 * (here < load ? here : load);
    if (!r->sees_others && here > 0 && share > limit_of(j, ADMIT_BUSY_CPUS))
        found(j, ADMIT_BUSY_CPUS, share, limit_of(j, ADMIT_BUSY_CPUS),
              "%d tasks that the daemon may not see want to run, %d of them on CPUs of the run",
              r->runnable, here);
}

static void found_task(struct judge *j, const struct busy_task *t, double limit)
{
    static const char where[] = "of the run or beside a CPU of it";
    struct blocker *b =
        found(j, ADMIT_BUSY_CPUS, t->share, limit, "a process of %s computes on CPU %d, %s",
              t->uid == geteuid() ? "the daemon's account" : "another account", t->cpu, where);
    if (b)
        snprintf(b->named, sizeof b->named, "process %d (%s, user %u) computes on CPU %d, %s",
                 (int)t->pid, t->name, (unsigned)t->uid, t->cpu, where);
}

static void check_busy(struct judge *j)
{
    bool set[TOPOLOGY_CPUS_MAX] = {false};
    mark_cpus(j, set);
    if (j->in->earlier && check_window(j, set))
        return;
    const struct busy_task *t = busy_here(j, set);
    double limit = limit_of(j, ADMIT_BUSY_CPUS);
    if (!t)
        check_hidden(j, set);
    else if (t->share > limit)
        found_task(j, t, limit);
}

static void checks_check_load(struct judge *j)
{
    const struct readings *r = j->in->now;
    int n = j->in->topology->n_cpus;
    double others = r->load - j->in->own_load, a_cpu = n ? others / n : 0;
    if (r->load >= 0 && a_cpu > limit_of(j, ADMIT_LOAD))
        found(j, ADMIT_LOAD, a_cpu, limit_of(j, ADMIT_LOAD),
              "the load of the last minute is %.2f on %d CPUs without what our own run left in it",
              others, n);
}

static void check_pressure(struct judge *j, enum admission_kind kind, double some, const char *what)
{
    double others = some - j->in->own_pressure;
    if (some >= 0 && others > limit_of(j, kind))
        found(j, kind, others, limit_of(j, kind), "tasks waited for %s %.1f %% of the last 10 s",
              what, others);
}

static void check_jobs(struct judge *j, enum admission_kind kind, bool pods)
{
    const struct readings *r = j->in->now;
    const struct batch_job *first = NULL;
    int n = 0;
    for (int i = 0; i < r->n_jobs; i++)
        if (r->jobs[i].pod == pods && !batch_place_is(j->in->within, &r->jobs[i]) && n++ == 0)
            first = &r->jobs[i];
    if (!first || n <= limit_of(j, kind))
        return;
    struct blocker *b = found(j, kind, n, limit_of(j, kind), "%d %s%s of %s on this node", n,
                              pods ? "pod" : "job", str_plural(n), first->manager);
    if (b)
        snprintf(b->named, sizeof b->named, "%s, such as %s", b->text, first->name);
}

static void check_swap(struct judge *j)
{
    const struct readings *a = j->in->earlier, *b = j->in->now;
    if (!a || a->swapped_pages < 0 || b->swapped_pages < 0)
        return;
    double rate = (double)(b->swapped_pages - a->swapped_pages) / window_s(j->in);
    if (rate > limit_of(j, ADMIT_SWAP))
        found(j, ADMIT_SWAP, rate, limit_of(j, ADMIT_SWAP),
              "%.0f pages a second were swapped in or out in the last %.1f s", rate,
              window_s(j->in));
}

static void check_throttled(struct judge *j)
{
    const struct readings *a = j->in->earlier, *b = j->in->now;
    double events = b->cooling, limit = limit_of(j, ADMIT_THROTTLED);
    if (a && a->throttle_events >= 0 && b->throttle_events > a->throttle_events)
        events += (double)(b->throttle_events - a->throttle_events);
    if (events > limit)
        found(j, ADMIT_THROTTLED, events, limit,
              "processors are slowed down by heat or power: %d cooling devices at work, %.0f "
              "events counted",
              b->cooling, events - b->cooling);
}

// A correction takes time that is in a sample, and a DIMM that needs one may need more.
static void check_memory_errors(struct judge *j)
{
    const struct readings *a = j->in->earlier, *b = j->in->now;
    int most;
    int64_t n = a ? memory_errors_since(&b->errors, &a->errors, &most) : 0;
    if (n > limit_of(j, ADMIT_MEMORY_ERRORS))
        found(j, ADMIT_MEMORY_ERRORS, (double)n, limit_of(j, ADMIT_MEMORY_ERRORS),
              "ECC corrected %lld error%s in memory in the last %.1f s, most of them at the memory "
              "controller mc%d: a DIMM may be failing",
              (long long)n, str_plural(n), window_s(j->in), most);
}

static void check_frequency(struct judge *j)
{
    const struct plan *p = j->in->plan;
    double least = limit_of(j, ADMIT_FREQUENCY_CAPPED), lowest = least;
    int cpu = -1, step = p->n_ranks > FREQUENCY_SAMPLE ? p->n_ranks / FREQUENCY_SAMPLE : 1;
    if (j->in->policy->rule[ADMIT_FREQUENCY_CAPPED].action == POLICY_IGNORE)
        return;
    for (int i = 0; i < p->n_ranks; i += step) {
        double share = readings_frequency_share(j->in->root, p->ranks[i].cpu);
        if (share >= 0 && share < lowest) {
            lowest = share;
            cpu = p->ranks[i].cpu;
        }
    }
    if (cpu >= 0)
        found(j, ADMIT_FREQUENCY_CAPPED, lowest, least,
              "CPU %d may run at %.0f %% of the frequency that it can", cpu, lowest);
}

// --- when

static void check_hours(struct judge *j)
{
    int wait = hours_wait_min(&j->in->policy->hours, j->in->day, j->in->minute);
    if (!wait)
        return;
    found(j, ADMIT_OUTSIDE_HOURS, wait, 0,
          "runs may start at %.100s; the next such time is in %d min", j->in->policy->hours_text,
          wait);
    if (j->in->policy->rule[ADMIT_OUTSIDE_HOURS].action == POLICY_REFUSE && j->out->n)
        j->out->retry_after_s = wait * 60;
}

static void check_soon(struct judge *j)
{
    double since = (double)j->in->idle_ms / 1000, limit = limit_of(j, ADMIT_TOO_SOON);
    int before = j->out->n;
    if (j->in->idle_ms < 0 || since >= limit)
        return;
    found(j, ADMIT_TOO_SOON, since, limit, "the last run ended %.0f s ago; %.0f s shall be between",
          since, limit);
    if (j->out->n > before && limit - since > j->out->retry_after_s)
        j->out->retry_after_s = (int)(limit - since) + 1;
}

__attribute__((format(printf, 2, 3))) static void note(struct judge *j, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(j->out->notes[j->out->n_notes++], sizeof j->out->notes[0], fmt, ap);
    va_end(ap);
}

// How busy CPUs were between two readings covers all processes; the processes of one moment do not.
static void note_what_is_hidden(struct judge *j)
{
    if (!j->in->now->sees_others && !j->in->earlier)
        note(j, "processes of other accounts are hidden from the daemon (ProtectProc= or a "
                "container): only the load shows them; asked again within a minute it "
                "knows how busy the CPUs were");
    if (j->in->no_lock)
        note(j, "other daemons of this host cannot be seen: %.100s cannot be opened",
             j->in->policy->host_lock);
}

static void check_instance(struct judge *j)
{
    if (j->in->other_instance)
        found(j, ADMIT_OTHER_INSTANCE, 1, 0,
              "another numaprobed measures on this host (it holds %s)", j->in->policy->host_lock);
}

// What is known only by a difference of two readings, and may happen during a run too.
static void check_lasting(struct judge *j)
{
    check_throttled(j);
    check_steal(j);
    check_swap(j);
    check_memory_errors(j);
}

static void check_node_now(struct judge *j)
{
    check_cpuset(j);
    check_mems(j);
    check_instance(j);
    check_jobs(j, ADMIT_BATCH_JOB, false);
    check_jobs(j, ADMIT_KUBERNETES_PODS, true);
    check_busy(j);
    check_pressure(j, ADMIT_CPU_PRESSURE, j->in->now->cpu_some, "a CPU");
    check_pressure(j, ADMIT_MEMORY_PRESSURE, j->in->now->memory_some, "memory");
    checks_check_load(j);
    check_quota(j);
    check_frequency(j);
    check_lasting(j);
    check_soon(j);
    check_hours(j); // last: it may know better when to ask again
    note_what_is_hidden(j);
}

void admission_judge(struct admission *a, const struct admission_input *in)
{
    struct judge j = {in, a};
    *a = (struct admission){0};
    check_live(&j);
    if (!in->topology->this_system)
        return; // CPUs and nodes of the plan are numbers of another machine: all else would be
                // untrue
    checks_check_memory(&j);
    if (in->now)
        check_node_now(&j);
}

void admission_judge_run(struct admission *a, const struct admission_input *in)
{
    struct judge j = {in, a};
    *a = (struct admission){0};
    check_lasting(&j);
}

// The parameter that requests too much memory; NULL: the kind is not of memory.
static const char *of_memory(enum admission_kind kind)
{
    if (kind == ADMIT_RESERVED_PAGES)
        return "pages";
    return kind == ADMIT_MEMORY || kind == ADMIT_CGROUP_MEMORY ? "size" : NULL;
}

int admission_error(const struct admission *a, struct err *err)
{
    if (!a->n)
        return 0;
    const char *memory = of_memory(a->list[0].kind);
    return err_set(err, memory ? ERR_NO_MEMORY_NODE : ERR_BUSY, memory ? memory : "", "%s",
                   a->list[0].text);
}

bool admission_may_pass(const struct admission *a)
{
    for (int i = 0; i < a->n; i++)
        if (!admission_kinds[a->list[i].kind].retry_s)
            return false;
    return a->n > 0;
}

void admission_write_json(const struct blocker *list, int n, bool named, struct jsonw *w,
                          const char *key)
{
    jsonw_array(w, key);
    for (int i = 0; i < n; i++) {
        jsonw_object(w, NULL);
        jsonw_text(w, "kind", admission_kinds[list[i].kind].name);
        jsonw_text(w, "text", named ? admission_named(&list[i]) : list[i].text);
        jsonw_fixed(w, "measured", list[i].measured, 3);
        jsonw_fixed(w, "limit", list[i].limit, 3);
        jsonw_text(w, "unit", admission_kinds[list[i].kind].unit);
        jsonw_bool(w, "forced", list[i].forced);
        jsonw_end(w);
    }
    jsonw_end(w);
}

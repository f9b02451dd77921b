// SPDX-License-Identifier: Apache-2.0
// Open MPI reads settings from files, from the environment and from its command line. Ours are on
// the command line, where a dry run shows them; the environment is made from nothing, and files are
// switched off.
#include "core/launch/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "core/os/program.h"
#include "model/target.h"

// A setting whose value is NULL is the run's directory.
struct setting {
    const char *name, *value;
};

// One node, no network but loopback (core/os/become.h), shared memory in files of the run's
// directory instead of /dev/shm, where they would outlive a killed rank. No patcher: it writes into
// program code for the sake of network cards, and where that is forbidden (MemoryDenyWriteExecute
// in the systemd unit) the rank crashes. No UCX either, which does the same, to madvise() and
// mmap() among others, when a thread begins.
static const struct setting settings_4[] = {
    {"plm", "isolated"},
    {"pml", "ob1"},
    {"btl", "self,vader"},
    {"btl_vader_backing_directory", NULL},
    {"btl_vader_single_copy_mechanism", "none"},
    {"shmem", "mmap"},
    {"patcher", "^overwrite"},
    {"osc", "^ucx"},
    {"orte_tmpdir_base", NULL},
    {"oob_tcp_if_include", "lo"},
};

// The same by the names of Open MPI 5, whose launcher is PRRTE. It is not given oob_tcp_if_include:
// PRRTE 3 leaves loopback out where there are other interfaces, and then finds none.
static const struct setting settings_5[] = {
    {"pml", "ob1"},
    {"btl", "self,sm"},
    {"btl_sm_backing_directory", NULL},
    {"smsc", "^cma,knem,xpmem"},
    {"shmem", "mmap"},
    {"patcher", "^overwrite"},
    {"osc", "^ucx"},
};
static const struct setting prte_settings_5[] = {
    {"plm", "ssh"},
    {"prte_tmpdir_base", NULL},
};

struct words {
    char **list;
    size_t n, room;
    bool failed;
};

static void words_fini(struct words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->list[i]);
    free(w->list);
    *w = (struct words){0};
}

// Takes the word. One place more is kept for the NULL.
static void words_take(struct words *w, char *word)
{
    if (word && w->n + 1 >= w->room) {
        size_t room = w->room ? 2 * w->room : 64;
        char **list = realloc(w->list, room * sizeof *list);
        if (list) {
            w->list = list;
            w->room = room;
        } else {
            free(word);
            word = NULL;
        }
    }
    if (!word) {
        w->failed = true;
        return;
    }
    w->list[w->n++] = word;
    w->list[w->n] = NULL;
}

static void words_add(struct words *w, const char *word)
{
    words_take(w, strdup(word));
}

__attribute__((format(printf, 2, 3))) static void words_fmt(struct words *w, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vfmt(&b, fmt, ap);
    va_end(ap);
    words_take(w, buf_steal(&b));
}

static bool find_by_env(const char *variable, char *out, size_t room)
{
    const char *value = getenv(variable);
    if (!value || !*value)
        return false;
    // An absolute path is taken as it is: a link may have a name of its own.
    CLEANUP_MEM char *whole = *value == '/' ? NULL : realpath(value, NULL);
    snprintf(out, room, "%s", whole ? whole : value);
    return true;
}

static bool find_bench(char *out, size_t room)
{
    static const char *const places[] = {"numa_bench", "../bench/numa_bench", "../bin/numa_bench",
                                         "../libexec/numaprobe/numa_bench"};
    char self[256];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return false;
    self[n] = 0;
    char *slash = strrchr(self, '/');
    *(slash ? slash : self) = 0;
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/%s", self, places[i]);
        CLEANUP_MEM char *whole = realpath(path, NULL);
        if (whole && strlen(whole) < room && program_is_executable(whole)) {
            memcpy(out, whole, strlen(whole) + 1);
            return true;
        }
    }
    return program_find("numa_bench", out, room);
}

// What numactl and libnuma ask first; a call of its own, because the library gives no reasons.
static bool policies_denied(void)
{
    return syscall(SYS_get_mempolicy, NULL, NULL, 0, NULL, 0) < 0 &&
           (errno == EPERM || errno == ENOSYS);
}

int launch_find_bench(struct launch_paths *paths, struct err *err)
{
    struct launch_paths p = {.dir_bytes = -1, .tasks = -1};
    if (!find_by_env("NUMAPROBE_BENCH", p.bench, sizeof p.bench))
        find_bench(p.bench, sizeof p.bench);
    if (!program_is_executable(p.bench))
        return err_set(err, ERR_UNAVAILABLE, "",
                       "the program numa_bench is missing: it belongs beside numaprobed, or set "
                       "NUMAPROBE_BENCH");
    p.policies_denied = policies_denied();
    *paths = p;
    return 0;
}

void launch_find_mpi(struct launch_paths *paths)
{
    if (!find_by_env("NUMAPROBE_MPIRUN", paths->mpirun, sizeof paths->mpirun))
        program_find("mpirun", paths->mpirun, sizeof paths->mpirun);
    if (!program_is_executable(paths->mpirun))
        paths->mpirun[0] = '\0';
    program_find("numactl", paths->numactl, sizeof paths->numactl);
}

static void add_settings(struct words *w, const char *option, const struct setting *list, size_t n,
                         const char *dir)
{
    for (size_t i = 0; i < n; i++) {
        words_add(w, option);
        words_add(w, list[i].name);
        words_add(w, list[i].value ? list[i].value : dir);
    }
}

static void add_mpirun(struct words *w, const struct launch_paths *paths, const char *dir)
{
    words_add(w, paths->mpirun);
    if (paths->mpi_major >= 5) {
        add_settings(w, "--mca", settings_5, COUNT_OF(settings_5), dir);
        add_settings(w, "--prtemca", prte_settings_5, COUNT_OF(prte_settings_5), dir);
    } else {
        add_settings(w, "--mca", settings_4, COUNT_OF(settings_4), dir);
    }
    words_add(w, "--bind-to"); // numa_bench does it, by numactl
    words_add(w, "none");
    if (paths->mpi_major >= 5) {
        words_add(w, "--map-by");
        words_add(w, ":OVERSUBSCRIBE");
    } else {
        words_add(w, "--oversubscribe");
    }
    words_add(w, "--stdin");
    words_add(w, "none");
}

static bool command_is(const struct param *p, const char *name)
{
    return strcmp(p->name, name) == 0;
}

// As the spec says, but where the plan has found what it leaves open.
static void command_value_of(const struct param *p, const struct spec *s, const struct plan *plan,
                             char *out, size_t room)
{
    if (command_is(p, "targets") && plan->n_targets)
        targets_write(plan->targets, plan->n_targets, out, room);
    else if (command_is(p, "load_cpus"))
        snprintf(out, room, "%s", plan->load_cpus);
    else if (command_is(p, "kernel") && s->sweep == SWEEP_MEMCPY)
        snprintf(out, room, "all"); // it has kernels of its own, but quick sets one
    else
        param_get_text(p, s, out, room);
}

static void add_params(struct words *w, const struct spec *s, const struct plan *plan)
{
    const struct param_table *t = &benchmarks[s->benchmark].params;
    for (int i = 0; i < t->n; i++) {
        char value[SPEC_TEXT_MAX], name[64];
        command_value_of(&t->params[i], s, plan, value, sizeof value);
        snprintf(name, sizeof name, "%s", t->params[i].name);
        for (char *p = name; *p; p++)
            if (*p == '_')
                *p = '-';
        words_fmt(w, "--%s=%s", name, value);
    }
}

static void add_bench(struct words *w, const struct launch_paths *paths, const struct plan *plan,
                      const struct spec *s, const char *dir, const char *nonce)
{
    words_add(w, paths->bench);
    words_add(w, benchmarks[s->benchmark].name);
    words_fmt(w, "--channel=%s/records", dir);
    words_fmt(w, "--nonce=%s", nonce);
    words_fmt(w, "--deadline=%lld", (long long)plan->timeout_s);
    if (s->budget_s || benchmarks[s->benchmark].keeps_budget)
        words_fmt(w, "--budget=%lld", (long long)s->budget_s);
    if (plan->found_bytes)
        words_fmt(w, "--found-cache=%lld", (long long)plan->found_bytes);
    add_params(w, s, plan);
}

static void add_bind(struct words *w, const struct plan *p)
{
    struct buf bind CLEANUP_BUF = BUF_INIT;
    char policy[TARGET_LABEL_ROOM];
    for (int i = 0; i < p->n_ranks; i++)
        buf_fmt(&bind, "%s%d:%d", i ? "," : "", p->ranks[i].cpu, plan_rank_node(p, i));
    w->failed |= !buf_ok(&bind);
    words_fmt(w, "--bind=%s", buf_text(&bind));
    target_label(p->ranks[0].mem_node, policy, sizeof policy);
    if (target_is_interleaved(p->ranks[0].mem_node))
        words_fmt(w, "--numa=%s", policy);
}

static void add_mpi_job(struct words *w, const struct launch_paths *paths, const struct plan *p,
                        const struct spec *s, const char *dir, const char *nonce)
{
    add_mpirun(w, paths, dir);
    words_add(w, "-np");
    words_fmt(w, "%d", p->n_ranks);
    add_bench(w, paths, p, s, dir, nonce);
    add_bind(w, p);
    if (!paths->policies_denied) // numactl would refuse; numa_bench binds itself to the CPU
        words_fmt(w, "--numactl=%s", paths->numactl);
}

static void add_processes(struct words *w, const struct launch_paths *paths, const struct plan *p,
                          const struct spec *s, const char *dir, const char *nonce)
{
    add_bench(w, paths, p, s, dir, nonce);
    words_fmt(w, "--np=%d", p->n_ranks);
    add_bind(w, p);
    if (s->oversubscribe)
        words_add(w, "--oversubscribe");
}

static void add_environment(struct words *w, const char *dir, const char *nonce, bool as_root)
{
    words_add(w, "PATH=" PROGRAM_PATH);
    words_add(w, "LC_ALL=C");
    words_fmt(w, "HOME=%s", dir);
    words_fmt(w, "TMPDIR=%s", dir);
    words_fmt(w, "NUMAPROBE_NONCE=%s", nonce);
    // hwloc's plugins look for GPUs, and connect to X displays for that: whoever pretends to be one
    // could delay the job and feed it data.
    words_add(w, "HWLOC_PLUGINS_PATH=");
    words_add(w, "HWLOC_COMPONENTS=-gl,-opencl,-cuda,-nvml,-rsmi,-levelzero");
    // UCX, which Open MPI loads to ask whether there is a fast network, would look for a file
    // system of its own, at a socket below /run/user or /tmp.
    words_add(w, "UCX_VFS_ENABLE=n");
    words_add(w, "OMPI_MCA_mca_base_param_files=/dev/null");
    words_add(w, "OMPI_MCA_mca_base_component_show_load_errors=0");
    if (!as_root)
        return;
    words_add(w, "OMPI_ALLOW_RUN_AS_ROOT=1");
    words_add(w, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    words_add(w, "PRTE_ALLOW_RUN_AS_ROOT=1");
    words_add(w, "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1");
}

static int command_finish(struct launch *l, struct words *argv, struct words *envp, struct err *err)
{
    if (argv->failed || envp->failed)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a command line");
    l->argv = steal_ptr(&argv->list);
    l->envp = steal_ptr(&envp->list);
    argv->n = envp->n = 0;
    return 0;
}

int launch_make_question(struct launch *l, const struct launch_paths *paths, const char *dir,
                         bool as_root, struct err *err)
{
    struct words argv CLEANUP(words_fini) = {0};
    struct words envp CLEANUP(words_fini) = {0};
    words_add(&argv, paths->mpirun);
    words_add(&argv, "--version");
    add_environment(&envp, dir, "none", as_root);
    return command_finish(l, &argv, &envp, err);
}

int launch_make(struct launch *l, const struct launch_paths *paths, const struct plan *p,
                const struct spec *s, const char *dir, const char *nonce, bool as_root,
                struct err *err)
{
    struct words argv CLEANUP(words_fini) = {0};
    struct words envp CLEANUP(words_fini) = {0};
    (p->processes ? add_processes : add_mpi_job)(&argv, paths, p, s, dir, nonce);
    add_environment(&envp, dir, nonce, as_root);
    return command_finish(l, &argv, &envp, err);
}

static void free_list(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}

void launch_fini(struct launch *l)
{
    free_list(l->argv);
    free_list(l->envp);
    *l = (struct launch){0};
}

static void write_word(const char *word, struct buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_=/.,:+@%";
    if (*word && strspn(word, plain) == strlen(word)) {
        buf_str(out, word);
        return;
    }
    buf_char(out, '\'');
    for (const char *p = word; *p; p++)
        if (*p == '\'')
            buf_str(out, "'\\''");
        else
            buf_char(out, *p);
    buf_char(out, '\'');
}

void launch_write_line(const struct launch *l, struct buf *out)
{
    for (char **p = l->argv; *p; p++) {
        if (p != l->argv)
            buf_char(out, ' ');
        write_word(*p, out);
    }
}

// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet demo: a simulated fleet behind real sockets of this machine, with one slow node,
// and the commands of a fleet over it. For people who want to see it before they install it.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/exits.h"
#include "client/fleet/fleet.h"
#include "virtual/serve.h"

struct demo_flags {
    int64_t nodes, bad;
    bool keep;
};

static const struct param demo_params[] = {
    {.name = "virtual_nodes",
     .kind = PARAM_INT,
     .offset = offsetof(struct demo_flags, nodes),
     .min = 10,
     .max = 10000,
     .def = "100",
     .help = "Number of simulated nodes, each on an address of its own of 127.0.0.0/8."},
    {.name = "bad",
     .kind = PARAM_INT,
     .offset = offsetof(struct demo_flags, bad),
     .min = 0,
     .max = 1000,
     .def = "1",
     .help = "Number of slow nodes among them."},
    {.name = "keep",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct demo_flags, keep),
     .def = "false",
     .help = "Keep the nodes until Ctrl-C, and print the settings with which other fleet commands "
             "reach them."},
};
const struct param_table fleet_demo_options = {demo_params, COUNT_OF(demo_params)};

enum { DEMO_RUNS = 8 }; // of each node and benchmark: three more than a verdict needs

// The names and addresses of all nodes, as the fleet's settings want them.
struct demo_place {
    int fd;
    char hosts[80], set[64];
};

// All nodes, from the first one's name to the last one's.
static int demo_name_nodes(struct demo_place *p, const struct world_options *o, struct err *err)
{
    char first[WORLD_NAME_ROOM], last[WORLD_NAME_ROOM];
    struct world *world = world_new(o, err);
    if (!world)
        return -1;
    world_name(world, 0, first);
    world_name(world, (int)o->nodes - 1, last);
    world_free(world);
    snprintf(p->set, sizeof p->set, "node[%s-%s]", first + strlen("node"), last + strlen("node"));
    return 0;
}

// A file without a name, so that nothing is left whatever ends this process. Others can open it by
// the path meanwhile.
static int demo_make_place(struct demo_place *p, struct err *err)
{
    p->fd = memfd_create("numaprobe-demo-hosts", MFD_CLOEXEC);
    if (p->fd < 0)
        return err_sys(err, "cannot make a file for the addresses");
    snprintf(p->hosts, sizeof p->hosts, "/proc/%d/fd/%d", (int)getpid(), p->fd);
    return 0;
}

static bool demo_nodes_live(const struct virtual_child *child)
{
    siginfo_t end = {0};
    return waitid(P_PID, (id_t)child->pid, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && !end.si_pid;
}

// Until Ctrl-C or the end of the nodes' process, which Ctrl-Z only stops.
static void demo_keep(const struct demo_place *p, const struct virtual_child *child)
{
    sigset_t stop;
    int signo = SIGCHLD;
    printf("\n"
           "In another terminal:\n"
           "  export NUMAPROBE_FLEET_URL='http://%%h:%d' NUMAPROBE_HOSTS_FILE=%s "
           "NUMAPROBE_NODES='%s'\n"
           "  numaprobe fleet status\n"
           "  numaprobe fleet ranking latency.local.dram.median_ns\n"
           "  numaprobe fleet run --quick\n"
           "Ctrl-C ends the nodes.\n",
           child->port, p->hosts, p->set);
    fflush(stdout);
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGHUP);
    sigaddset(&stop, SIGCHLD);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    while (signo == SIGCHLD && demo_nodes_live(child))
        sigwait(&stop, &signo);
}

static int demo_show(struct cli *c, const struct invocation *i, const struct demo_place *p,
                     int port, struct err *err)
{
    c->fleet.stored = c->fleet.idle = false;
    *c->fleet.collector = *c->fleet.hostfile = *c->fleet.from_slurm = '\0';
    snprintf(c->fleet.fleet_url, sizeof c->fleet.fleet_url, "http://%%h:%d", port);
    snprintf(c->fleet.hosts_file, sizeof c->fleet.hosts_file, "%s", p->hosts);
    snprintf(c->fleet.nodes, sizeof c->fleet.nodes, "%s", p->set);
    if (c->output != OUTPUT_TABLE)
        return cmd_fleet_outliers(c, i, err);
    puts("$ numaprobe fleet status");
    int status = cmd_fleet_status(c, i, err);
    if (status < 0 || status == CLI_EXIT_INTERRUPTED)
        return status;
    puts("\n$ numaprobe fleet outliers");
    return cmd_fleet_outliers(c, i, err);
}

static void demo_print_head(const struct demo_flags *f, int port)
{
    char url[VIRTUAL_URL_ROOM];
    virtual_url(0, port, url);
    const char *first = url + strlen("http://");
    printf("%lld simulated node%s on %.*s%s, port %d. No memory is measured.\n\n",
           (long long)f->nodes, f->nodes == 1 ? " listens" : "s listen", (int)strcspn(first, ":"),
           first, f->nodes == 1 ? "" : " and following", port);
}

// A slow node is what was wanted, so it is success.
int cmd_fleet_demo(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct demo_flags *f = i->options;
    struct virtual_options o;
    struct virtual_child child;
    struct demo_place place = {.fd = -1};
    virtual_defaults(&o);
    o.world.nodes = f->nodes;
    o.world.bad = f->bad;
    o.world.runs = DEMO_RUNS;
    if (demo_name_nodes(&place, &o.world, err) < 0 || demo_make_place(&place, err) < 0)
        return -1;
    snprintf(o.hosts, sizeof o.hosts, "%s", place.hosts);
    if (virtual_start(&child, &o, err) < 0) {
        close(place.fd);
        return -1;
    }
    if (c->output == OUTPUT_TABLE)
        demo_print_head(f, child.port);
    int status = demo_show(c, i, &place, child.port, err);
    if (status >= 0 && status != CLI_EXIT_INTERRUPTED && f->keep)
        demo_keep(&place, &child);
    virtual_stop(&child);
    close(place.fd);
    return status == CLI_EXIT_SLOWER ? CLI_EXIT_SUCCESS : status;
}

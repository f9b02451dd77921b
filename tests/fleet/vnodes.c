// SPDX-License-Identifier: Apache-2.0
// Virtual nodes (virtual/serve.h) as a program: prints {"nodes":…,"port":…} when all of them
// listen, and ends with its standard input or its parent.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/fleet/node_tls.h"
#include "virtual/serve.h"

static void print_ready(void *ctx, int port)
{
    const struct virtual_options *o = ctx;
    printf("{\"nodes\":%lld,\"port\":%d,\"first\":\"127.1.0.1\"}\n", (long long)o->world.nodes,
           port);
    fflush(stdout);
}

static int read_faults(const char *path, struct virtual_options *o, struct err *err)
{
    CLEANUP_FILE FILE *f = fopen(path, "re");
    if (!f)
        return err_sys(err, "cannot read %.200s", path);
    size_t n = fread(o->faults, 1, sizeof o->faults - 1, f);
    o->faults[n] = '\0';
    return feof(f) || getc(f) == EOF ? 0
                                     : err_set(err, ERR_INVALID, "faults-file",
                                               "is longer than %zu", sizeof o->faults - 1);
}

struct given {
    struct virtual_options *o;
    const char *ca; // NULL: without TLS
};

static int other_option(void *ctx, const char *option, const char *value, struct err *err)
{
    struct given *g = ctx;
    if (value && strcmp(option, "tls-ca") == 0) {
        g->ca = value;
        return 1;
    }
    if (strcmp(option, "faults-file") != 0 || !value)
        return 0;
    return read_faults(value, g->o, err) < 0 ? -1 : 1;
}

int main(int argc, char **argv)
{
    struct virtual_options o;
    struct err err = {0};
    struct given g = {&o, NULL};
    int next = 1;
    virtual_defaults(&o);
    struct param_target targets[] = {{&world_options, &o.world}, {&virtual_options, &o}};
    struct param_args args = {
        .targets = targets, .n_targets = COUNT_OF(targets), .other = other_option, .context = &g};
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        puts("usage: vnodes [--faults-file=FILE] [--tls-ca=FILE] [OPTION]...\n"
             "--tls-ca: https alone; the certificate of the CA of all nodes is written to FILE");
        param_print_help(&world_options, stdout);
        param_print_help(&virtual_options, stdout);
        return 0;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (param_parse_args(&args, argc, argv, &next, &err) == 0 && next == argc &&
        (!g.ca || node_tls_begin(&o, g.ca, &err) == 0) &&
        virtual_serve(&o, STDIN_FILENO, print_ready, &o, &err) == 0)
        return 0;
    fprintf(stderr, "vnodes: %s%s%s\n", err.member, *err.member ? ": " : "", err.text);
    return 1;
}

// SPDX-License-Identifier: Apache-2.0
// The firmware names slots, and only some kernels name channels. Without them the bound counts each
// module as a channel of its own: with two modules per channel it is twice what is possible, and
// never too low.
#include "analysis/report/modules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memory_modules {
    int n;            // populated
    int channels;     // that have modules; 0: not known
    double mts;       // million transfers per second that they are set up for
    double most_mbps; // channels (modules, where they are not known) x 8 bytes x mts
};

static const char *module_fact(const struct facts *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->list[i].name, name) == 0)
            return f->list[i].value;
    return NULL;
}

static double lower_of(double a, double b)
{
    return a <= 0 || (b > 0 && b < a) ? b : a;
}

// "4800 MT/s, 4400 MT/s"
static double lowest_speed(const char *text)
{
    double lowest = strtod(text, NULL);
    for (const char *at = text; (at = strstr(at, ", "));)
        lowest = lower_of(lowest, strtod(at += 2, NULL));
    return lowest;
}

// "8x64G DDR5-4800 2R, 4x32G DDR5-5600 1R; slots 0-11 of 16": 4800. 0: none is stated.
static double lowest_rated(const char *text)
{
    double lowest = 0;
    for (const char *at = text; (at = strstr(at, "DDR"));) {
        at += strcspn(at, "- ,;");
        if (*at == '-')
            lowest = lower_of(lowest, strtod(at + 1, NULL));
    }
    return lowest;
}

// "16x64G DDR5-4800 2R, 2x32G DDR5-4800; slots 0-17 of 32": 18.
static int count_modules(const char *text)
{
    const char *end = strchr(text, ';');
    int n = 0;
    for (const char *at = text; at && (!end || at < end);) {
        char *rest;
        long count = strtol(at, &rest, 10);
        if (count > 0 && count < 1024 && *rest == 'x')
            n += (int)count;
        at = strstr(at, ", ");
        at = at ? at + 2 : NULL;
    }
    return n;
}

// Of several speeds the lowest counts, as controllers set all modules to it. A DDR module transfers
// 64 bits at a time; DDR5 has two halves. False: not known.
static bool memory_modules_of(const struct fingerprint *f, struct memory_modules *out)
{
    const char *modules = f ? module_fact(&f->machine_class, "dimms") : NULL;
    const char *speed = f ? module_fact(&f->config, "dimm_speed") : NULL;
    const char *channels = f ? module_fact(&f->config, "dimm_channels") : NULL;
    if (!modules)
        return false;
    out->n = count_modules(modules);
    out->mts = speed ? lowest_speed(speed) : 0;
    if (out->mts <= 0)
        out->mts = lowest_rated(modules);
    // A driver that sees more channels than there are modules splits them (DDR5 has two halves).
    long n = channels ? strtol(channels, NULL, 10) : 0;
    out->channels = n > 0 && n <= out->n ? (int)n : 0;
    out->most_mbps = (out->channels ? out->channels : out->n) * out->mts * 8;
    return out->most_mbps > 0;
}

// The modules are those of the whole machine.
static bool covers_machine(const struct topology *t, int nodes)
{
    int with_cpus = 0;
    for (int n = 0; t && n < t->n_nodes; n++) {
        bool any = false;
        for (int c = 0; c < t->n_cpus && !any; c++)
            any = t->cpus[c].node == t->nodes[n].os;
        with_cpus += any;
    }
    return nodes >= with_cpus;
}

void report_modules(struct report_out *o, const struct report_source *s, int nodes,
                    double reached_mbps)
{
    struct memory_modules modules;
    if (isnan(reached_mbps) || !covers_machine(s->topology, nodes) ||
        !memory_modules_of(s->machine, &modules))
        return;
    struct jsonw *w = report_finding(o, "modules");
    jsonw_i64(w, "modules", modules.n);
    jsonw_i64(w, "channels", modules.channels);
    jsonw_fixed(w, "mts", modules.mts, 0);
    jsonw_fixed(w, "most_mbps", modules.most_mbps, 0);
    jsonw_fixed(w, "reached_mbps", reached_mbps, 0);
    jsonw_fixed(w, "percent", 100 * reached_mbps / modules.most_mbps, 1);
    char where[32] = "", condition[] = ", if each has a channel of its own";
    if (modules.channels) {
        snprintf(where, sizeof where, " on %d channels", modules.channels);
        *condition = '\0';
    }
    report_say(o,
               "%d memory modules at %.0f MT/s%s deliver at most %.1f GB/s%s. The nodes reach %.1f "
               "GB/s together, %.0f %% of that.",
               modules.n, modules.mts, where, modules.most_mbps / 1000, condition,
               reached_mbps / 1000, 100 * reached_mbps / modules.most_mbps);
}

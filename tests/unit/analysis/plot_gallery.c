// SPDX-License-Identifier: Apache-2.0
// Pictures to look at: plot_gallery FOLDER writes all of them as SVG; plot_gallery text or ascii
// prints some out of characters.
#include <string.h>

#include "tests/unit/analysis/plot_samples.h"

static void save(struct sample *s, const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.svg", folder, name);
    const char *svg = draw(s, NULL);
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(svg, f);
        fclose(f);
    }
    sample_fini(s);
}

static int gallery(const char *folder)
{
    struct sample s = {0};
    if (make_published(&s, "serial"))
        save(&s, folder, "published-serial");
    if (make_published(&s, "concurrent"))
        save(&s, folder, "published-concurrent");
    make_latency(&s, 8, 4, 16 << 10, 18);
    save(&s, folder, "ranks-8");
    make_latency(&s, 128, 8, 16 << 10, 18);
    save(&s, folder, "ranks-128");
    make_latency(&s, 1024, 16, 1 << 10, 24);
    save(&s, folder, "ranks-1024");
    make_latency(&s, 1, 1, 64 << 20, 1);
    save(&s, folder, "one-value");
    make_idle(&s, 8);
    save(&s, folder, "idle-8");
    make_pairs(&s, 12, 2);
    save(&s, folder, "pairs-12");
    make_pairs(&s, 64, 8);
    save(&s, folder, "pairs-64");
    make_pairs(&s, 512, 8);
    save(&s, folder, "pairs-512");
    make_pingpong(&s, 3);
    save(&s, folder, "pingpong");
    make_threads(&s);
    save(&s, folder, "threads");
    make_loaded(&s, 2);
    save(&s, folder, "loaded");
    make_access(&s, 16);
    save(&s, folder, "access-16");
    make_access(&s, 128);
    save(&s, folder, "access-128");
    make_noisy(&s, 1);
    save(&s, folder, "noisy-1");
    make_noisy(&s, 8);
    save(&s, folder, "noisy-8");
    make_two_kinds(&s, 128);
    save(&s, folder, "two-kinds-128");
    make_odd_ranks(&s, 128, 8);
    save(&s, folder, "odd-128");
    make_odd_ranks(&s, 1024, 16);
    save(&s, folder, "odd-1024");
    make_loaded(&s, 1);
    save(&s, folder, "loaded-1");
    make_mixes(&s, 2);
    save(&s, folder, "mixes");
    make_idle(&s, 4);
    disturb(&s.list[0], 2, 1, 4, 5);
    save(&s, folder, "idle-4-disturbed");
    make_idle(&s, 1);
    save(&s, folder, "idle-1");
    make_nodes(&s);
    save(&s, folder, "nodes");
    return 0;
}

static int text_gallery(bool unicode)
{
    struct sample s = {0};
    for (int i = 0; i < 8; i++) {
        if (i == 0 && !make_published(&s, "concurrent"))
            continue;
        i == 1   ? make_latency(&s, 128, 4, 16 << 10, 18)
        : i == 2 ? make_idle(&s, 8)
        : i == 3 ? make_pairs(&s, 64, 8)
        : i == 4 ? make_pingpong(&s, 3)
        : i == 5 ? make_threads(&s)
        : i == 6 ? make_loaded(&s, 2)
        : i == 7 ? make_access(&s, 16)
                 : (void)0;
        puts(draw_text(&s, unicode, false));
        sample_fini(&s);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    bool text = strcmp(argv[1], "text") == 0;
    return text || strcmp(argv[1], "ascii") == 0 ? text_gallery(text) : gallery(argv[1]);
}

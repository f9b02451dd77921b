// SPDX-License-Identifier: Apache-2.0
// Sources that name more nodes, or send more, than there is room for. This program is also the
// process that reads a source.
#include "tests/unit/tap.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/os/child.h"
#include "fleet/collect/naming.h"
#include "model/nodeset.h"
#include "nodes/announced.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/fleet/wait.h"

// What each source names: a large one, whose names come first, and two small ones.
enum { SOURCES = 3, SMALL = 2 };
static const struct {
    const char *source, *set;
} named_by[SOURCES] = {
    {"file:/large", "a[1-65536]"}, {"file:/small", "z1,z2"}, {"file:/other", "a1,y1"}};

#define MANY "file:/many"
#define LONG "file:/long"
#define FIRST "file:/first"
#define SECOND "file:/second"

static struct err err;

struct heard {
    struct loop *loop;
    int nodes, small, shared;
};

static int print_source(const char *source)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    CLEANUP_NODESET struct nodeset nodes = {0};
    for (int i = 0; i < SOURCES; i++)
        if (strcmp(source, named_by[i].source) == 0 &&
            nodeset_parse(&nodes, named_by[i].set, NULL, &err) < 0)
            return 1;
    for (int i = 0; i < nodes.n; i++)
        if (named_write(&out, &(struct named_node){.name = nodes.names[i]}, &err) < 0)
            return 1;
    if (named_sort(&out, &err) < 0)
        return 1;
    return fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0;
}

static bool hear_nodes(void *ctx, const struct naming_node *nodes, int n, bool whole)
{
    struct heard *h = ctx;
    h->nodes = n;
    h->small = h->shared = 0;
    for (int i = 0; i < n; i++) {
        h->small += strchr("yz", *nodes[i].said.name) != NULL;
        h->shared += (nodes[i].sources & (nodes[i].sources - 1)) != 0;
    }
    if (whole)
        loop_stop(h->loop);
    return true;
}

static void test_small_sources_stay(void)
{
    static struct fleetd_config config;
    struct heard heard = {.loop = loop_new(&err)};
    size_t n = 0;
    for (int i = 0; i < SOURCES; i++)
        n += (size_t)snprintf(config.source + n, sizeof config.source - n, "%s%s", i ? " " : "",
                              named_by[i].source);
    struct naming *naming =
        heard.loop ? naming_new(heard.loop, &config, hear_nodes, &heard, &err) : NULL;
    CHECK(naming && loop_run(heard.loop, &err) == 0, "all sources are read: %s", err.text);
    CHECK_INT(heard.nodes, NAMING_NODES_MAX - 1, "as many nodes as there is room for, a1 twice");
    CHECK_INT(heard.small, SMALL + 1, "all of the small sources, although they come last");
    CHECK_INT(heard.shared, 1, "one is named by two");
    CHECK(naming && strstr(naming_problem(naming), "of file:/large the first 65532 of 65536 count"),
          "and what is left out is said: %s", naming ? naming_problem(naming) : "");
    naming_free(naming);
    loop_free(heard.loop);
}

// ---- One source that is too large ---------------------------------------------------------------

static bool hear_too_much(void *ctx, const struct naming_node *nodes, int n, bool whole)
{
    (void)nodes;
    (void)n;
    (void)whole;
    loop_stop(ctx);
    return true;
}

static const struct naming *large;

// Known when the process of the source has ended.
static bool source_has_problem(void)
{
    return *naming_problem(large);
}

static void test_too_large(const char *source, const char *said)
{
    static struct fleetd_config config;
    struct loop *loop = loop_new(&err);
    snprintf(config.source, sizeof config.source, "%s", source);
    struct naming *naming = loop ? naming_new(loop, &config, hear_too_much, loop, &err) : NULL;
    CHECK(naming, "a source: %s", err.text);
    if (naming) {
        large = naming;
        run_until(loop, source_has_problem, &err);
        CHECK(strstr(naming_problem(naming), said), "%s: %s", source, naming_problem(naming));
    }
    naming_free(naming);
    loop_free(loop);
}

static int print_numbered(void)
{
    for (int i = 0; i <= NAMING_NODES_MAX; i++)
        printf("n%06d\t\t\t\t\t\n", i);
    return fflush(stdout) != 0;
}

// More bytes than so many nodes need.
static int print_long(void)
{
    for (int i = 0; i <= NAMING_BYTES_MAX; i++)
        putchar('x');
    return fflush(stdout) != 0;
}

// ---- Nodes that push ----------------------------------------------------------------------------

static const struct naming *announcing;
static int heard_pushing, heard_contacted;

// The tokens are a FIFO: they are read when the test opens it.
static int print_pushing(const char *source)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    struct named_node n = {.name = "p1"};
    if (str_starts(source, "announce:")) {
        CLEANUP_FD int tokens = open(source + strlen("announce:"), O_RDONLY | O_CLOEXEC);
        n.url = tokens < 0 ? NULL : ANNOUNCED_URL;
    } else
        n.url = strcmp(source, FIRST) == 0 ? "http://a:1" : "http://b:1";
    if (!n.url || named_write(&out, &n, &err) < 0)
        return 1;
    return fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0;
}

static bool is_of_pushing(const char *source)
{
    return str_starts(source, "announce:") || strcmp(source, FIRST) == 0 ||
           strcmp(source, SECOND) == 0;
}

static bool hear_pushing(void *ctx, const struct naming_node *nodes, int n, bool whole)
{
    for (int i = 0; i < n; i++)
        if (strcmp(nodes[i].said.url, ANNOUNCED_URL) == 0 ||
            strcmp(nodes[i].other_url, ANNOUNCED_URL) == 0)
            heard_pushing++;
        else
            heard_contacted++;
    if (whole)
        loop_stop(ctx);
    return true;
}

static bool others_are_read(void)
{
    return naming_source_at(announcing, 0)->read_ms && naming_source_at(announcing, 1)->read_ms;
}

static void test_nodes_that_push(void)
{
    static struct fleetd_config config = {.source = FIRST " " SECOND " announce"};
    char dir[64], path[80];
    struct loop *loop = loop_new(&err);
    dir_make(dir);
    snprintf(path, sizeof path, "%s/tokens", dir);
    snprintf(config.http.token_file, sizeof config.http.token_file, "%s", path);
    CHECK_INT(mkfifo(path, 0600), 0, "the tokens");
    struct naming *naming = loop ? naming_new(loop, &config, hear_pushing, loop, &err) : NULL;
    CHECK(naming, "three sources: %s", err.text);
    if (naming) {
        announcing = naming;
        run_until(loop, others_are_read, &err);
        CHECK_INT(heard_contacted + heard_pushing, 0, "the tokens are waited for");
        CLEANUP_FD int tokens = open(path, O_WRONLY | O_CLOEXEC);
        CHECK(tokens >= 0 && loop_run(loop, &err) == 0, "they are read: %s", err.text);
        CHECK_INT(heard_pushing, 1, "a node that pushes, behind two addresses of it");
        CHECK_INT(heard_contacted, 0, "is never one that is contacted");
    }
    naming_free(naming);
    loop_free(loop);
    dir_remove(dir);
}

static bool tokens_have_problem(void)
{
    return *naming_source_at(announcing, 2)->problem;
}

// The process that reads the tokens fails at a start, and reads them a moment later.
static void test_tokens_unreadable(void)
{
    static struct fleetd_config config = {.source = FIRST " " SECOND " announce"};
    char dir[64], path[80];
    struct loop *loop = loop_new(&err);
    dir_make(dir);
    snprintf(path, sizeof path, "%s/tokens", dir);
    snprintf(config.http.token_file, sizeof config.http.token_file, "%s", path);
    heard_pushing = heard_contacted = 0;
    struct naming *naming = loop ? naming_new(loop, &config, hear_pushing, loop, &err) : NULL;
    CHECK(naming, "three sources: %s", err.text);
    if (naming) {
        announcing = naming;
        run_until(loop, others_are_read, &err);
        run_until(loop, tokens_have_problem, &err);
        CHECK_INT(heard_contacted + heard_pushing, 0, "no node is contacted");
        CHECK(str_starts(naming_problem(naming),
                         "no node is contacted until the tokens can be read: "),
              "and why: %s", naming_problem(naming));
        int tokens = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        close(tokens);
        naming_again(naming);
        CHECK(tokens >= 0 && loop_run(loop, &err) == 0, "they are read later: %s", err.text);
        CHECK(heard_pushing >= 1 && !heard_contacted, "a node that pushes is not contacted");
        CHECK_STR(naming_problem(naming), "", "and all is well");
    }
    naming_free(naming);
    loop_free(loop);
    dir_remove(dir);
}

int main(int argc, char **argv)
{
    char source[64];
    if (argc > 1 && strcmp(argv[1], "--naming") == 0)
        return !child_read_text(STDIN_FILENO, source, sizeof source) ? 1
               : strcmp(source, MANY) == 0                           ? print_numbered()
               : strcmp(source, LONG) == 0                           ? print_long()
               : is_of_pushing(source)                               ? print_pushing(source)
                                                                     : print_source(source);
    test_small_sources_stay();
    test_too_large(MANY, "65537 nodes, more than the 65536 that there is room for");
    test_too_large(LONG, "more nodes than there is memory or room for");
    test_nodes_that_push();
    test_tokens_unreadable();
    return tap_done();
}

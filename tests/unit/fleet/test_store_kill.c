// SPDX-License-Identifier: Apache-2.0
// A process that writes is killed in the middle of its work, again and again. What it had reported
// is there, every run up to the place is there once, and nothing is behind the place.
#include "fleet/store/store.h"
#include "tests/unit/tap.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/str.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/fleet/cluster.h"
#include "tests/unit/fleet/pages.h"

enum { KILLS_SHORT = 50, NODES = 3, PUTS_MAX = 6, PAGE_RUNS = 40, RESTARTS = 3, TRIES_MOST = 30 };

static int kills = KILLS_SHORT; // NUMAPROBE_STORE_KILLS
static const char *const names[NODES] = {"k1", "k2", "k3"};
static const char *const histories[NODES] = {"a1", "a2", "a3"};

struct seen {
    int64_t next[NODES];  // places
    int64_t runs[NODES];  // stored
    bool in_order[NODES]; // 1, 2, 3 … and the values that the node measured
};

static int node_of(const char *name)
{
    for (int i = 0; i < NODES; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static int see_feed(void *ctx, const struct fleet_feed *f, struct err *err)
{
    struct seen *seen = ctx;
    (void)err;
    seen->next[node_of(f->name)] = f->next;
    return 0;
}

// The newest first; the value of the first metric follows from the number.
static int see_page(void *ctx, const struct summary_page *p, struct err *err)
{
    struct seen *seen = ctx;
    struct metric list[PAGE_METRICS];
    int node = node_of(p->node);
    (void)err;
    seen->runs[node] = p->n_runs;
    seen->in_order[node] = true;
    for (int i = 0; i < p->n_runs; i++) {
        const struct summary *r = &p->runs[i];
        made_page_metrics(list, PAGE_METRICS, p->n_runs - i);
        char a[32], b[32];
        snprintf(a, sizeof a, "%.6g", list[7].value);
        snprintf(b, sizeof b, "%.6g", (double)r->values[7]);
        if (r->seq != p->n_runs - i || strcmp(a, b) != 0)
            seen->in_order[node] = false;
    }
    return 0;
}

static bool see(struct fleet_store *s, struct seen *seen, struct err *err)
{
    *seen = (struct seen){0};
    return fleet_store_feeds(s, false, see_feed, seen, err) == 0 &&
           fleet_store_window(s, &(struct fleet_window){0}, see_page, seen, err) == 0;
}

static bool is_whole(const struct seen *seen, const int64_t *reported)
{
    for (int i = 0; i < NODES; i++)
        if (seen->next[i] != seen->runs[i] || (seen->runs[i] && !seen->in_order[i]) ||
            seen->next[i] < reported[i]) {
            printf("# %s: place %lld, runs %lld, reported %lld\n", names[i],
                   (long long)seen->next[i], (long long)seen->runs[i], (long long)reported[i]);
            return false;
        }
    return true;
}

// Pages of all nodes from where they stand, of another length each time.
static int put_all(struct fleet_store *s, int64_t *next, int turn, struct err *err)
{
    struct made_page made[NODES];
    struct fleet_page pages[NODES];
    struct fleet_ack acks[NODES];
    for (int i = 0; i < NODES; i++) {
        struct maker m = MAKER(names[i]);
        m.history = histories[i];
        m.received_ms = page_day0 + 5000 * page_day; // after all that is measured
        m.after = next[i];
        m.last = next[i] + 1 + (turn * 7 + i * 13) % PAGE_RUNS;
        made_page_make(&made[i], &m);
        pages[i] = made[i].page;
    }
    int result = fleet_store_put(s, pages, NODES, acks, err);
    for (int i = 0; i < NODES; i++) {
        if (result == 0)
            next[i] = acks[i].next;
        made_page_fini(&made[i]);
    }
    return result;
}

// Writes until it is killed, and reports each transaction by the places then.
__attribute__((noreturn)) static void writer(const char *where, int fd, int turn)
{
    struct err err = {0};
    struct seen seen;
    struct fleet_store *s = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    if (!s || !see(s, &seen, &err)) {
        fprintf(stderr, "# writer: %s\n", err.text);
        _exit(1);
    }
    for (;; turn++)
        if (put_all(s, seen.next, turn, &err) < 0 ||
            write(fd, seen.next, sizeof seen.next) != sizeof seen.next)
            _exit(1);
}

// Kills it when it has reported `puts` transactions: it is in the middle of the next one.
static bool kill_writer(const char *where, int turn, int puts, int64_t *reported)
{
    int pipe_fd[2], status = 0;
    bool told = true;
    if (pipe(pipe_fd) < 0)
        abort();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(pipe_fd[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        writer(where, pipe_fd[1], turn);
    }
    close(pipe_fd[1]);
    for (int i = 0; i < puts && told; i++)
        told = read(pipe_fd[0], reported, NODES * sizeof *reported) ==
               (ssize_t)(NODES * sizeof *reported);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    while (read(pipe_fd[0], reported, NODES * sizeof *reported) > 0) // between the two
        ;
    close(pipe_fd[0]);
    return told && WIFSIGNALED(status);
}

// A server keeps the lock of a writer that was killed until it has noticed, and opening waits for
// that. On a busy machine it may take longer.
static struct fleet_store *open_after_kill(const char *where, struct err *err)
{
    struct fleet_store *s = NULL;
    for (int i = 0; !s && i < TRIES_MOST; i++) {
        s = fleet_store_open(where, FLEET_STORE_WRITE, err);
        if (!s && err->code != ERR_CONFLICT)
            break;
    }
    return s;
}

static void test_kills(const char *where)
{
    int64_t reported[NODES] = {0};
    int whole = 0, killed = 0;
    struct seen seen = {0};
    struct err err = {0};
    for (int turn = 0; turn < kills; turn++) {
        killed += kill_writer(where, turn, turn % PUTS_MAX, reported);
        struct fleet_store *s = open_after_kill(where, &err);
        if (!s) {
            printf("# %s\n", err.text);
            continue;
        }
        whole += see(s, &seen, &err) && is_whole(&seen, reported);
        fleet_store_close(s);
    }
    CHECK_INT(killed, kills, "killed while it wrote");
    CHECK_INT(whole, kills, "nothing lost, nothing twice");
    CHECK(seen.runs[0] > kills, "there was something to lose: %lld runs of a node",
          (long long)seen.runs[0]);
}

// The server goes away below a writer, and comes back.
static void test_restarts(struct cluster *c)
{
    struct err err = {0};
    struct seen seen;
    struct fleet_store *s = fleet_store_open(c->uri, FLEET_STORE_WRITE, &err);
    int refused = 0, continued = 0;
    CHECK(s && see(s, &seen, &err), "a writer: %s", err.text);
    for (int i = 0; i < RESTARTS && s; i++) {
        cluster_down(c, SIGQUIT);
        refused += put_all(s, seen.next, i, &err) < 0 && err.code == ERR_UNAVAILABLE;
        cluster_up(c);
        struct seen now;
        continued +=
            see(s, &now, &err) && is_whole(&now, seen.next) && put_all(s, now.next, i, &err) == 0;
        seen = now;
    }
    CHECK_INT(refused, RESTARTS, "without a server nothing is stored: %s", err.text);
    CHECK_INT(continued, RESTARTS, "with it the same writer continues");
    CHECK(s && see(s, &seen, &err) && is_whole(&seen, seen.next), "and nothing is lost");
    fleet_store_close(s);
}

int main(void)
{
    char dir[64], path[128];
    struct cluster c CLEANUP(cluster_stop) = {0};
    const char *wanted = getenv("NUMAPROBE_STORE_KILLS");
    int64_t n;
    if (wanted && str_to_i64(wanted, &n))
        kills = (int)n;
    dir_make(dir);
    snprintf(path, sizeof path, "%s/fleet.db", dir);
    test_kills(path);
    if (cluster_start(&c)) {
        test_kills(c.uri);
        test_restarts(&c);
    } else {
        SKIP("no PostgreSQL on this machine, or the program was built without it");
    }
    dir_remove(dir);
    return tap_done();
}

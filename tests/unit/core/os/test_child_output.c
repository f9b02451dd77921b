// SPDX-License-Identifier: Apache-2.0
// A child whose output the loop reads. The children are this program again, with a word of what to
// do.
#include "tests/unit/tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/os/child.h"
#include "core/os/child_output.h"

enum { FLOOD = 100000, LITTLE = 1000, STATUS = 3, LATE_MS = 1, SOON_MS = 20 };

struct heard {
    struct loop *loop;
    struct child_output child;
    struct loop_timer *timer;
    int pieces, ends, status;
    bool late, whole;
    char line[64];
    size_t bytes;
};

static void hear_end(void *ctx, const struct child_output_end *end)
{
    struct heard *h = ctx;
    h->ends++;
    h->status = end->status;
    h->late = end->late;
    h->whole = buf_ok(end->text);
    h->bytes = end->text->len;
    child_output_line(end->text, h->line, sizeof h->line);
    loop_stop(h->loop);
}

static void hear_and_drop(void *ctx, struct buf *text)
{
    struct heard *h = ctx;
    h->pieces++;
    buf_drop(text, text->len);
}

static void stop_soon(void *ctx, struct buf *text)
{
    struct heard *h = ctx;
    (void)text;
    h->pieces++;
    loop_timer_set(h->timer, SOON_MS);
}

static void stop_at_once(void *ctx, struct buf *text)
{
    struct heard *h = ctx;
    (void)text;
    loop_stop(h->loop);
}

static void stop_now(void *ctx, uint32_t events)
{
    struct heard *h = ctx;
    (void)events;
    loop_stop(h->loop);
}

static int start(struct heard *h, struct child_output_use use, const char *what, int in)
{
    struct err err;
    char program[] = "test", word[16];
    char *argv[] = {program, word, NULL};
    snprintf(word, sizeof word, "%s", what);
    use.ended = hear_end;
    use.ctx = h;
    int rc = child_output_start(&h->child, h->loop, &use, argv, in, &err);
    CHECK(rc == 0 && h->child.pid > 0, "a child starts: %s", what);
    return rc;
}

static void run(struct heard *h)
{
    struct err err;
    CHECK(loop_run(h->loop, &err) == 0, "the loop runs");
}

static void test_text(struct heard *h)
{
    const struct child_output_use all = {.most = LITTLE, .limit_ms = -1};
    struct err err;
    *h = (struct heard){.loop = h->loop};
    CLEANUP_FD int in = child_text("good\001morning\nand more", &err);
    if (start(h, all, "copy", in) == 0)
        run(h);
    CHECK_STR(h->line, "good?morning", "its first line, without a control character");
    CHECK_INT(h->bytes, strlen("good morning\nand more"), "all of the text is there");
    CHECK(WIFEXITED(h->status) && WEXITSTATUS(h->status) == STATUS, "with its own status");
    CHECK(!h->late && h->whole && h->ends == 1 && !h->child.pid, "it has ended, once");
}

static void test_limits(struct heard *h)
{
    const struct child_output_use little = {.most = LITTLE, .limit_ms = -1};
    const struct child_output_use late = {.most = LITTLE, .limit_ms = LATE_MS};
    const struct child_output_use drops = {.most = LITTLE, .limit_ms = -1, .more = hear_and_drop};
    *h = (struct heard){.loop = h->loop};
    if (start(h, little, "flood", -1) == 0)
        run(h);
    CHECK(!h->whole && h->bytes < FLOOD && h->ends == 1, "of too much text the buffer fails");
    if (start(h, drops, "flood", -1) == 0)
        run(h);
    CHECK(h->whole && h->pieces > 1 && h->ends == 2, "what is dropped meanwhile does not count");
    if (start(h, late, "stay", -1) == 0)
        run(h);
    CHECK(h->late && WIFSIGNALED(h->status) && WTERMSIG(h->status) == SIGKILL,
          "a child that takes too long is killed");
}

// The loop continues: its timer fires while the child is there.
static void test_stays(struct heard *h)
{
    const struct child_output_use use = {.most = LITTLE, .limit_ms = -1, .more = stop_soon};
    struct err err;
    *h = (struct heard){.loop = h->loop};
    h->timer = loop_timer_new(h->loop, stop_now, h, &err);
    CHECK(h->timer, "a timer");
    if (start(h, use, "close", -1) == 0)
        run(h);
    CHECK(h->pieces == 1 && h->ends == 0 && h->child.pid > 0,
          "a child that closes its output and stays holds up nothing");
    pid_t was = h->child.pid;
    child_output_stop(&h->child);
    waitpid(was, NULL, 0); // a busy machine may have left it to a later call
    CHECK(!h->child.pid && kill(was, 0) < 0, "it is stopped and reaped");
    CHECK_INT(h->ends, 0, "which is no end that it reports");
    child_output_stop(&h->child);
    child_output_leave(&h->child);
    loop_timer_free(h->timer);
}

// Until it is killed. Says whether it may.
static _Noreturn void trace(const struct heard *list, int n, int out)
{
    char traced = 'y';
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < n; i++)
        if (ptrace(PTRACE_SEIZE, list[i].child.pid, 0, 0) < 0)
            traced = 'n';
    if (write(out, &traced, 1) == 1)
        pause();
    _exit(0);
}

static bool is_traced(const struct heard *list, int n, pid_t *tracer)
{
    char traced = 'n';
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0, "a pipe");
    *tracer = fork();
    if (*tracer == 0)
        trace(list, n, ends[1]);
    close(ends[1]);
    bool told = read(ends[0], &traced, 1) == 1;
    close(ends[0]);
    return told && traced == 'y';
}

// Of a child that is traced the end is its tracer's to see first. A disk that does not respond
// holds one in the same way.
static void test_held(struct heard *h)
{
    enum { HELD = 20 };
    const struct child_output_use use = {.most = LITTLE, .limit_ms = -1, .more = stop_at_once};
    struct heard list[HELD];
    pid_t tracer, none = 0;
    int there = 0, ends[HELD];
    for (int i = 0; i < HELD; i++) {
        list[i] = (struct heard){.loop = h->loop};
        if (start(&list[i], use, "traced", -1) == 0)
            run(&list[i]);
        ends[i] = (int)syscall(SYS_pidfd_open, list[i].child.pid, 0);
    }
    bool traced = is_traced(list, HELD, &tracer);
    for (int i = 0; i < HELD; i++) {
        pid_t was = list[i].child.pid;
        child_output_stop(&list[i].child);
        there += kill(was, 0) == 0;
    }
    if (traced)
        CHECK_INT(there, HELD, "children that are held hold up nothing");
    else
        SKIP("no process may trace another");
    kill(tracer, SIGKILL);
    waitpid(tracer, NULL, 0);
    for (int i = 0; i < HELD; i++)
        waitid(P_PIDFD, (id_t)ends[i], &(siginfo_t){0}, WEXITED | WNOWAIT);
    child_end(&none, 0);
    for (int i = there = 0; i < HELD; i++) {
        there += waitid(P_PIDFD, (id_t)ends[i], &(siginfo_t){0}, WEXITED | WNOHANG) == 0;
        close(ends[i]);
    }
    CHECK_INT(there, 0, "and a later call reaps them");
}

static void test_killed_otherwise(void)
{
    enum { KILLED = 3 };
    pid_t list[KILLED];
    int there = 0;
    for (int i = 0; i < KILLED; i++) {
        list[i] = fork();
        if (list[i] == 0)
            for (;;)
                pause();
        int end = (int)syscall(SYS_pidfd_open, list[i], 0);
        kill(list[i], SIGKILL);
        child_reap(end);
    }
    for (int i = 0; i < KILLED; i++) // until they are gone, or were reaped
        waitid(P_PID, (id_t)list[i], &(siginfo_t){0}, WEXITED | WNOWAIT);
    child_end(&(pid_t){0}, 0);
    for (int i = 0; i < KILLED; i++)
        there += waitpid(list[i], NULL, WNOHANG) >= 0;
    CHECK_INT(there, 0, "those that were killed and have not ended yet are reaped later, each");
}

static void test_leave(struct heard *h)
{
    const struct child_output_use use = {.most = LITTLE, .limit_ms = -1};
    int ends[2], status = 0;
    *h = (struct heard){.loop = h->loop};
    CHECK(pipe2(ends, O_CLOEXEC) == 0, "a pipe");
    if (start(h, use, "wait", ends[0]) == 0) {
        pid_t pid = h->child.pid;
        child_output_leave(&h->child);
        CHECK(!h->child.pid && kill(pid, 0) == 0, "one that is left is no longer ours, and runs");
        close(ends[1]);
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status),
              "and ends when it wants to");
    }
    close(ends[0]);
}

// A variable that is not there takes no place, and a name that begins as another one is another.
static void test_variables(struct heard *h)
{
    static const char *const names[] = {"CHILD_NOT", "CHILD_A", "CHILD_LONG", NULL};
    setenv("CHILD_A", "a=b", true);
    setenv("CHILD_AB", "not listed", true);
    setenv("CHILD_LONG", "", true);
    unsetenv("CHILD_NOT");
    for (int with = 0; with < 2; with++) {
        const struct child_output_use use = {
            .most = LITTLE, .limit_ms = -1, .variables = with ? names : NULL};
        *h = (struct heard){.loop = h->loop};
        if (start(h, use, "variables", -1) < 0)
            continue;
        run(h);
        CHECK_STR(h->line, with ? "CHILD_A=a=b CHILD_LONG= " : "", "its environment");
    }
}

static int be_child(const char *what)
{
    char bytes[4096] = {0};
    ssize_t n;
    if (strcmp(what, "copy") == 0) {
        while ((n = read(STDIN_FILENO, bytes, sizeof bytes)) > 0)
            if (write(STDOUT_FILENO, bytes, (size_t)n) != n)
                return 1;
        return STATUS;
    }
    for (char **e = environ; strcmp(what, "variables") == 0 && *e; e++)
        if (strncmp(*e, "CHILD_", 6) == 0 && printf("%s ", *e) < 0)
            return 1;
    if (strcmp(what, "flood") == 0)
        for (size_t sent = 0; sent < FLOOD; sent += sizeof bytes)
            if (write(STDOUT_FILENO, bytes, sizeof bytes) < 0)
                return 1;
    if (strcmp(what, "wait") == 0)
        return read(STDIN_FILENO, bytes, 1) != 0;
    if (strcmp(what, "traced") == 0) {
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        if (write(STDOUT_FILENO, "x", 1) == 1)
            pause();
    }
    if (strcmp(what, "close") == 0 && write(STDOUT_FILENO, "x", 1) == 1)
        close(STDOUT_FILENO);
    while (strcmp(what, "close") == 0 || strcmp(what, "stay") == 0)
        pause();
    return 0;
}

int main(int argc, char **argv)
{
    struct err err;
    if (argc > 1)
        return be_child(argv[1]);
    struct heard h = {.loop = loop_new(&err)};
    CHECK(h.loop, "a loop");
    test_text(&h);
    test_limits(&h);
    test_stays(&h);
    test_held(&h);
    test_killed_otherwise();
    test_leave(&h);
    test_variables(&h);
    loop_free(h.loop);
    return tap_done();
}

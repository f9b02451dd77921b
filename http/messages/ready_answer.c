// SPDX-License-Identifier: Apache-2.0
// Answers are kept by the bytes of what was asked, the one that was used last first. The others
// make room for new ones.
#include "http/messages/ready_answer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void answer_forget(struct answers *all, struct ready_answer *a)
{
    TAILQ_REMOVE(&all->kept, a, entry);
    all->kept_bytes -= a->head.bytes;
    all->n_kept--;
    free(a->key);
    a->key = NULL;
    answer_unref(a);
}

static void answer_forget_all(void *ctx, uint32_t events)
{
    struct answers *all = ctx;
    (void)events;
    while (!TAILQ_EMPTY(&all->kept))
        answer_forget(all, TAILQ_FIRST(&all->kept));
}

int answers_init(struct answers *all, struct loop *l, struct err *err)
{
    *all = (struct answers){0};
    TAILQ_INIT(&all->kept);
    all->forget = loop_timer_new(l, answer_forget_all, all, err);
    return all->forget ? 0 : -1;
}

void answers_fini(struct answers *all)
{
    if (!all->forget)
        return;
    answer_forget_all(all, 0);
    loop_timer_free(all->forget);
    all->forget = NULL;
}

struct ready_answer *answers_find(struct answers *all, const void *key, size_t n)
{
    struct ready_answer *a;
    TAILQ_FOREACH(a, &all->kept, entry)
    if (a->key_bytes == n && memcmp(a->key, key, n) == 0)
        break;
    if (!a)
        return NULL;
    TAILQ_REMOVE(&all->kept, a, entry);
    TAILQ_INSERT_HEAD(&all->kept, a, entry);
    return answer_ref(a);
}

struct ready_answer *answers_add(struct answers *all, const struct worker_answer *head, int fd)
{
    struct ready_answer *a = calloc(1, sizeof *a);
    if (!a) {
        close(fd);
        return NULL;
    }
    a->all = all;
    a->refs = 1;
    a->fd = fd;
    a->head = *head;
    all->bytes += head->bytes;
    return a;
}

void answers_keep(struct answers *all, struct ready_answer *a, const void *key, size_t n)
{
    if (a->head.bytes > ANSWERS_KEPT || a->key)
        return;
    a->key = malloc(n);
    if (!a->key)
        return;
    memcpy(a->key, key, n);
    a->key_bytes = n;
    while (all->kept_bytes + a->head.bytes > ANSWERS_KEPT || all->n_kept == ANSWERS_KEPT_MAX)
        answer_forget(all, TAILQ_LAST(&all->kept, kept_answers));
    answer_ref(a);
    TAILQ_INSERT_HEAD(&all->kept, a, entry);
    all->kept_bytes += a->head.bytes;
    all->n_kept++;
    loop_timer_set(all->forget, ANSWERS_KEPT_MS);
}

bool answers_have_room(struct answers *all, size_t bytes)
{
    while (all->bytes + bytes > ANSWERS_MAX && !TAILQ_EMPTY(&all->kept))
        answer_forget(all, TAILQ_LAST(&all->kept, kept_answers));
    return !all->bytes || all->bytes + bytes <= ANSWERS_MAX;
}

struct ready_answer *answer_ref(struct ready_answer *a)
{
    a->refs++;
    return a;
}

void answer_unref(struct ready_answer *a)
{
    if (!a || --a->refs)
        return;
    a->all->bytes -= a->head.bytes;
    close(a->fd);
    free(a);
}

// SPDX-License-Identifier: Apache-2.0
// One table, so that no command minds one of them and forgets another.
#include "client/interrupts.h"

#include <stddef.h>

static const int interrupt_signals[INTERRUPTS] = {SIGINT, SIGTERM, SIGHUP};

void interrupts_take(struct interrupts *before, void (*handler)(int signo))
{
    struct sigaction act = {.sa_handler = handler};
    for (int i = 0; i < INTERRUPTS; i++)
        if (sigaction(interrupt_signals[i], NULL, &before->was[i]) == 0 &&
            before->was[i].sa_handler != SIG_IGN)
            sigaction(interrupt_signals[i], &act, NULL);
}

void interrupts_give_back(const struct interrupts *before)
{
    for (int i = 0; i < INTERRUPTS; i++)
        sigaction(interrupt_signals[i], &before->was[i], NULL);
}

void interrupts_block(bool blocked)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < INTERRUPTS; i++)
        sigaddset(&set, interrupt_signals[i]);
    sigprocmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

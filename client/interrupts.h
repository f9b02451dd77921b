// SPDX-License-Identifier: Apache-2.0
// What ends a command from outside: Ctrl-C, SIGTERM (timeout, systemd) and SIGHUP (the terminal was
// closed). Those that are ignored stay so: nohup.
#pragma once
#include <signal.h>
#include <stdbool.h>

enum { INTERRUPTS = 3 };

struct interrupts {
    struct sigaction was[INTERRUPTS];
};

void interrupts_take(struct interrupts *before, void (*handler)(int signo));
void interrupts_give_back(const struct interrupts *before);
void interrupts_block(bool blocked);

// SPDX-License-Identifier: Apache-2.0
// How evenly something was shared out. Pure.
#pragma once

// Jain's index (Jain, Chiu and Hawe, DEC TR-301, 1984): (sum of x)^2 / (n * sum of x^2). 1: all
// have the same; 1/n: one has all. Of nothing at all: 1.
double fairness_jain(const double *x, int n);
// The least over the greatest, 0…1. Of nothing at all: 1.
double fairness_least(const double *x, int n);

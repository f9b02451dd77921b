// SPDX-License-Identifier: Apache-2.0
// Student's t distribution and the false discovery rate. Pure.
#pragma once

double dist_t_two_sided(double t, double df); // P(|T| >= |t|)
double dist_t_upper(double t, double df);     // P(T >= t)
double dist_t_quantile(double p, double df);  // p in (0.5, 1), df >= 1
// The quantile at 0.975, to 1e-5 and in no time: an interval of each of 100,000 cells. df >= 1.
double dist_t_975(double df);
double dist_digamma(double x);          // derivative of log gamma; x > 0
double dist_trigamma(double x);         // its derivative; x > 0
double dist_trigamma_inverse(double y); // y > 0
// Benjamini and Hochberg (1995): adjusted p values, in place; NaN stays and does not count.
// `scratch` has room for n ints.
void dist_fdr(double *p, int n, int *scratch);
// Cauchy combination of p values (Liu and Xie, 2020): holds whatever the values depend on. The
// weighted mean of their terms has a tail, which is the p of all. A p above 0.99 counts as 0.99:
// one value that is extreme on the other side hides nothing.
double dist_cauchy_term(double p);
double dist_cauchy_tail(double mean);
// A small generator for permutation tests (splitmix64): same seed, same answer, on any machine.
static inline unsigned long long dist_next(unsigned long long *state)
{
    unsigned long long z = *state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static inline int dist_below(unsigned long long *state, int n) // uniform in 0 … n-1
{
    return (int)(((dist_next(state) >> 32) * (unsigned long long)n) >> 32);
}

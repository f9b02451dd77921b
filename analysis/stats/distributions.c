// SPDX-License-Identifier: Apache-2.0
// No library: the incomplete beta function by its continued fraction, quantiles by Newton's
// method, the gamma function without lgamma()'s global variable.
#include "analysis/stats/distributions.h"

#include <math.h>
#include <stdlib.h>

// Continued fraction of the incomplete beta function, by Lentz' method.
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double h = d;
    for (int m = 1; m <= 300; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double step = 1;
        for (int k = 0; k < 2; k++) {
            double f = k == 0 ? even : odd;
            d = 1 + f * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + f / c;
            c = fabs(c) < tiny ? tiny : c;
            step = c * d;
            h *= step;
        }
        if (fabs(step - 1) < 1e-15)
            break;
    }
    return h;
}

// lgamma() writes a global.
static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

static double beta_regularised(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double dist_t_two_sided(double t, double df)
{
    return beta_regularised(df / 2, 0.5, df / (df + t * t));
}

double dist_t_upper(double t, double df)
{
    double tail = dist_t_two_sided(t, df) / 2;
    return t > 0 ? tail : 1 - tail;
}

static double t_density(double t, double df)
{
    double front = log_gamma((df + 1) / 2) - log_gamma(df / 2) - log(df * M_PI) / 2;
    return exp(front - (df + 1) / 2 * log1p(t * t / df));
}

// Where to begin: the normal quantile (Abramowitz and Stegun 26.2.23) and the first term of its
// expansion in 1/df.
static double t_guess(double tail, double df)
{
    double u = sqrt(-2 * log(tail / 2));
    double z = u - (2.515517 + u * (0.802853 + u * 0.010328)) /
                       (1 + u * (1.432788 + u * (0.189269 + u * 0.001308)));
    return z + (z * z * z + z) / (4 * df);
}

// Newton: the tail is convex, so from the left no step goes too far, and from the right only the
// first does.
double dist_t_quantile(double p, double df)
{
    double tail = 2 * (1 - p), t = fmax(0, t_guess(tail, df));
    for (int i = 0; i < 200; i++) {
        double step = (dist_t_two_sided(t, df) - tail) / (2 * t_density(t, df));
        t = fmax(0, t + step);
        if (!(fabs(step) > 1e-10 * t))
            break;
    }
    return t;
}

double dist_t_975(double df)
{
    enum { STEPS = 1024 };
    static double table[STEPS + 1]; // over 1 / df; 0: not looked up yet
    double x = fmin(1, fmax(0, 1 / df)) * STEPS;
    int at = (int)fmin(x, STEPS - 1);
    for (int i = at; i <= at + 1; i++)
        if (table[i] <= 0)
            table[i] = dist_t_quantile(0.975, i ? (double)STEPS / i : 1e9);
    return table[at] + (x - at) * (table[at + 1] - table[at]);
}

static int by_p(const void *a, const void *b, void *p)
{
    double x = ((const double *)p)[*(const int *)a], y = ((const double *)p)[*(const int *)b];
    return (x > y) - (x < y);
}

void dist_fdr(double *p, int n, int *scratch)
{
    int m = 0;
    for (int i = 0; i < n; i++)
        if (!isnan(p[i]))
            scratch[m++] = i;
    qsort_r(scratch, m, sizeof *scratch, by_p, p);
    double least = 1;
    for (int k = m - 1; k >= 0; k--) {
        least = fmin(least, p[scratch[k]] * m / (k + 1));
        p[scratch[k]] = least;
    }
}

// tan() of nearly a right angle is exact only as far as the angle is: 1 / (p pi) is, for small p.
double dist_cauchy_term(double p)
{
    const double small = 1e-9, least = 1e-300, most = 0.99;
    p = fmin(fmax(p, least), most);
    return p < small ? 1 / (p * M_PI) : tan((0.5 - p) * M_PI);
}

double dist_cauchy_tail(double mean)
{
    const double large = 1e9;
    return mean > large ? 1 / (mean * M_PI) : 0.5 - atan(mean) / M_PI;
}

// Both by recurrence to where the asymptotic series is exact to 1e-12 (Abramowitz and
// Stegun 6.3.18, 6.4.12).
double dist_digamma(double x)
{
    double sum = 0;
    for (; x < 10; x++)
        sum -= 1 / x;
    double y = 1 / (x * x);
    return sum + log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y / 240)));
}

double dist_trigamma(double x)
{
    double sum = 0;
    for (; x < 10; x++)
        sum += 1 / (x * x);
    double y = 1 / (x * x);
    return sum + 1 / x + y / 2 +
           y / x * (1.0 / 6 - y * (1.0 / 30 - y * (1.0 / 42 - y * (1.0 / 30 - y * 5 / 66))));
}

// Bisection: trigamma falls from infinity to 0, between 1/x and 1/x + 1/x^2.
double dist_trigamma_inverse(double y)
{
    double low = 1 / (y + 1), high = 1 / y + 1;
    while (dist_trigamma(low) < y)
        low /= 2;
    for (int i = 0; i < 100 && high - low > 1e-12 * high; i++) {
        double x = (low + high) / 2;
        if (dist_trigamma(x) > y)
            low = x;
        else
            high = x;
    }
    return (low + high) / 2;
}

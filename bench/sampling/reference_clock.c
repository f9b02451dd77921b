// SPDX-License-Identifier: Apache-2.0
// The fastest of several tries counts, so that an interrupt is no change of the clock.
#include "bench/sampling/reference_clock.h"

#include <math.h>

#include "bench/kernels/core_clock.h"

enum { CLOCK_TRIES = 8 };

void reference_clock_take(struct cycle_seen *seen)
{
    double ns = core_clock_cycle_ns(CLOCK_TRIES);
    if (!(ns > 0))
        return;
    seen->least_ns = seen->n ? fmin(seen->least_ns, ns) : ns;
    seen->most_ns = fmax(seen->most_ns, ns);
    seen->sum_ns += ns;
    seen->loads_ns += core_clock_load_ns(CLOCK_TRIES);
    seen->n++;
}

double reference_clock_mean_ns(const struct cycle_seen *seen)
{
    return seen->n ? seen->sum_ns / seen->n : NAN;
}

double reference_clock_load_cycles(const struct cycle_seen *seen)
{
    return seen->n ? seen->loads_ns / seen->sum_ns : NAN;
}

double reference_clock_change(const struct cycle_seen *seen)
{
    return seen->n ? seen->most_ns / seen->least_ns : 1;
}

// SPDX-License-Identifier: Apache-2.0
#include "bench/benchmarks/table.h"

#define BENCHMARK_RUN(id, name) [BENCHMARK_##id] = name##_run,
benchmark_fn *const benchmark_runs[BENCHMARKS] = {BENCHMARK_LIST(BENCHMARK_RUN)};

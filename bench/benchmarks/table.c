// SPDX-License-Identifier: Apache-2.0
// The list of model/spec.h as an array of functions. It lies above the benchmarks, so that the
// frame (bench/session) knows none of them.
#include "bench/benchmarks/table.h"

#define BENCHMARK_RUN(id, name) [BENCHMARK_##id] = name##_run,
benchmark_fn *const benchmark_runs[BENCHMARKS] = {BENCHMARK_LIST(BENCHMARK_RUN)};

// SPDX-License-Identifier: Apache-2.0
// The benchmarks of model/spec.h as functions: for each of its list there is a file here that
// defines NAME_run().
#pragma once
#include "bench/session/session.h"

#define BENCHMARK_RUN(id, name) benchmark_fn name##_run;
BENCHMARK_LIST(BENCHMARK_RUN)
#undef BENCHMARK_RUN

extern benchmark_fn *const benchmark_runs[BENCHMARKS];

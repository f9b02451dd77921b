// SPDX-License-Identifier: Apache-2.0
// The latency benchmark by method classic.
#pragma once
#include "bench/session/session.h"

benchmark_fn latency_classic_run;

// SPDX-License-Identifier: Apache-2.0
// How long measuring takes: arithmetic on a spec and its workload with assumed speeds, before
// anything is measured. The function of each benchmark (struct benchmark's `estimate`) follows its
// loops in bench/benchmarks. Returns seconds.
#pragma once
#include "model/spec.h"
#include "model/workload.h"

double estimate_latency(const struct spec *s, const struct workload *w);
double estimate_matrix(const struct spec *s, const struct workload *w);
double estimate_bandwidth(const struct spec *s, const struct workload *w);
double estimate_pingpong(const struct spec *s, const struct workload *w);
double estimate_c2c(const struct spec *s, const struct workload *w);
double estimate_firsttouch(const struct spec *s, const struct workload *w);
double estimate_loaded(const struct spec *s, const struct workload *w);
double estimate_hierarchy(const struct spec *s, const struct workload *w);
double estimate_pagefault(const struct spec *s, const struct workload *w);

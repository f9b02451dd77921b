// SPDX-License-Identifier: Apache-2.0
// The command line: the benchmark's own parameters (model/spec.h) and those of this program, both
// from tables.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "model/spec.h"

enum format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON };

struct options {
    struct spec spec;
    char channel[512]; // FIFO that rank 0 writes records to; "": by hand
    char nonce[40];
    int64_t deadline_s;   // 0: none
    int64_t ranks;        // to start without MPI; 0: none
    char bind[16384];     // of them; 1024 ranks of "65535:65535,"
    char numactl[256];    // that binds ranks of MPI; "": libnuma does
    uint64_t found_bytes; // of a cache beyond those that the kernel lists; 0: none
    bool oversubscribe;   // of those ranks
    bool csv, json, serial, quick, help, version;
    enum format format;
    // As given, for the diagnostics; borrowed.
    int argc;
    char **argv;
};

extern const struct param_table options_own;

// ERR_USAGE says what is wrong; `err` is not NULL.
int options_parse(struct options *o, int argc, char **argv, struct err *err);
void options_help(const struct options *o, FILE *out); // of the benchmark named, or latency

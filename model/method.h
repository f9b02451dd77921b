// SPDX-License-Identifier: Apache-2.0
// Constants of the methods from which the time of a run follows: the loops of bench/ use them, and
// the estimate of a plan (model/estimate.c) counts with the same.
#pragma once

enum {
    // Warming up before a visit's samples.
    WARM_NS = 20000000,  // at least; governors of clocks take 10 to 20 ms
    CHASE_WHOLE_LLC = 4, // a whole lap below this many last-level caches, one of them walked …
    CHASE_SPARED = 64,   // … else links to fill one, less this part of them: 1 % of the hits
    WARM_CHUNK = 8192,   // hops between looks at the clock: below 4 ms on the slowest memory
    SAMPLE_HOPS_MIN = 10000, // of a sample of a chase

    // bandwidth: a pass over a small working set moves so much, in several laps.
    BAND_LAPS_BYTES = 64 << 20,
    BAND_WARM_NS = 10000000, // of filling, before the passes of ranks that slept
    BAND_WARM_PART = 2,      // of one array: twice the caches that STREAM's rule counts

    // pingpong
    TRIPS_BYTES = 40 << 20, // of all messages of a size, as IMB limits its repetitions
    TRIPS_LEAST = 20,
    BATCH_NS = 100000, // a sample's length: the first trips of it are slower than the rest
    BATCH_MOST = 1000, // trips
    MESSAGE_SAMPLES_LEAST = 20,
    WARM_TRIPS = 20,
    WARM_TRIPS_LARGE = 4, // of messages above PEAK_FROM, which take longer than a clock needs
    PEAK_FROM = 65536,    // where the peak of a pair is looked for

    // c2c: of a sample's trips, on each line, before a visit's samples.
    C2C_WARM_PART = 4,
    // Of hitm and hit: few enough for the first-level cache, enough that a clock's 25 ns are below
    // 1 % of reading them.
    C2C_AREA_LINES = 128,

    // Pairs of ranks: turns of a control pair alone, and as many with the others of its round.
    CONTROL_REPEATS = 7,
    PAIR_PATIENCE = 4, // times the samples requested, while too many are disturbed

    // loaded
    LOAD_CALIBRATE_MS = 10, // several times
    LOAD_CALIBRATIONS = 5,
    LOAD_WARM_MS = 15,      // of chasing, after a change of the load
    LOAD_SCOUT_SAMPLES = 5, // at a level
    LOAD_SCOUT_ROUNDS = 4,  // at most, spread over all of them
};

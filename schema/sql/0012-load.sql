-- SPDX-License-Identifier: Apache-2.0
-- What a load from the L1 cache takes on each rank's core. NULL: not known, as of all earlier runs.
--
-- How large it gets: a number of 8 bytes and its header a rank: 9 bytes, 6.3 MB in ten years of a run of 8 ranks an hour.
ALTER TABLE rank ADD COLUMN load_cycles REAL;  -- of clock_ghz, mean of the repetitions

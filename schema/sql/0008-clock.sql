-- SPDX-License-Identifier: Apache-2.0
-- How much of a rank's time others took, and the clock of its core. NULL: not known, as of all earlier runs.
--
-- How large it gets: two numbers of 8 bytes and their headers a rank: 18 bytes, 12.6 MB in ten years of a run of 8 ranks an
-- hour.
ALTER TABLE rank ADD COLUMN off_cpu_share REAL;  -- of the time of all its samples
ALTER TABLE rank ADD COLUMN clock_ghz REAL;      -- mean of the repetitions

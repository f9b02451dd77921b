-- SPDX-License-Identifier: Apache-2.0
-- How the samples of a cell are distributed: model/sketch.c has the packed form. NULL: not known, as of all earlier runs.
--
-- How large it gets: a byte of the record's header, and at most 11 bytes up to 128 samples: 12 bytes a row, 0.13 GB in ten
-- years of a run an hour with 8 ranks and 15 sizes, 0.14 GB with what pages leave free.
ALTER TABLE cell ADD COLUMN distribution BLOB;

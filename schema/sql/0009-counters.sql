-- SPDX-License-Identifier: Apache-2.0
-- What the CPU counted for a cell: the proof of its latency. NULL: nothing was counted, as of all earlier runs.
--
-- How large it gets: a NULL is a byte of the record's header: 4 bytes a row, 42 MB in ten years of a run an hour with 8 ranks
-- and 15 sizes. Counted, a row has 5 bytes more.
DROP VIEW measurement;
ALTER TABLE cell ADD COLUMN misses_per_hop_milli INTEGER;
ALTER TABLE cell ADD COLUMN walks_per_hop_milli INTEGER;
ALTER TABLE cell ADD COLUMN cycles_per_hop_milli INTEGER;
ALTER TABLE cell ADD COLUMN confirmed INTEGER;

-- For people: every number of every latency run, one line per cell.
CREATE VIEW measurement AS
SELECT run.id AS run,
       run.node AS node,
       datetime(coalesce(run.measured_ms, run.created_ms) / 1000, 'unixepoch') AS created,
       m.name AS matrix,
       json_extract(m.row_axis, '$.values[' || c.row || ']') AS rank,
       rank.cpu AS cpu,
       rank.mem_node AS mem_node,
       json_extract(m.col_axis, '$.values[' || c.col || ']') AS working_set_bytes,
       c.n AS n,
       c.disturbed AS disturbed,
       c.median_milli / 1000.0 AS median_ns,
       c.lo_milli / 1000.0 AS lo_ns,
       c.hi_milli / 1000.0 AS hi_ns,
       c.min_milli / 1000.0 AS min_ns,
       c.p10_milli / 1000.0 AS p10_ns,
       c.p90_milli / 1000.0 AS p90_ns,
       c.p99_milli / 1000.0 AS p99_ns,
       c.mean_milli / 1000.0 AS mean_ns,
       c.sd_milli / 1000.0 AS sd_ns,
       c.overlap_e4 / 10000.0 AS overlap,
       c.converged AS converged,
       c.misses_per_hop_milli / 1000.0 AS misses_per_hop,
       c.walks_per_hop_milli / 1000.0 AS walks_per_hop,
       c.cycles_per_hop_milli / 1000.0 AS cycles_per_hop,
       c.confirmed AS confirmed
  FROM run
  JOIN matrix AS m ON m.run_id = run.id AND m.quantity = 'latency' AND m.unit = 'ns'
  JOIN cell AS c ON c.run_id = m.run_id AND c.matrix = m.matrix
  LEFT JOIN rank ON rank.run_id = run.id
       AND rank.rank = json_extract(m.row_axis, '$.values[' || c.row || ']');

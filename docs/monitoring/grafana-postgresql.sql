-- SPDX-License-Identifier: Apache-2.0
-- Queries for Grafana with the PostgreSQL of a collector as the data source (store = postgresql://...). Each is the query of
-- one panel; $__timeFilter, $__timeFrom and $__timeTo are Grafana's. Give Grafana an account that can only read:
--   CREATE ROLE grafana LOGIN; GRANT pg_read_all_data TO grafana;
-- The view `history` has a row for each value: node, measured, benchmark, variant, seq, metric, unit, value.

-- Median of a metric over all nodes per day (time series)
SELECT date_trunc('day', measured) AS time, percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS median
FROM history
WHERE $__timeFilter(measured) AND metric = 'latency.local.dram.median_ns'
GROUP BY 1 ORDER BY 1;

-- A metric of one node over time (time series)
SELECT measured AS time, value, variant AS metric
FROM history
WHERE $__timeFilter(measured) AND node = 'node01' AND metric = 'latency.local.dram.median_ns'
ORDER BY 1;

-- Nodes in order of the median of a metric, the slowest first (bar gauge, table)
SELECT node, percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS median, count(*) AS runs
FROM history
WHERE $__timeFilter(measured) AND metric = 'latency.local.dram.median_ns'
GROUP BY node ORDER BY median DESC LIMIT 20;

-- Nodes whose newest run is old (table)
SELECT node.name AS node, max(run.measured) AS newest
FROM node LEFT JOIN run ON run.node = node.id AND run.measured > $__timeFrom()
GROUP BY node.name ORDER BY newest NULLS FIRST LIMIT 50;

-- Changes of set-up per day: rollouts (bars)
SELECT date_trunc('day', to_timestamp(from_ms / 1000.0)) AS time, count(*) AS changes
FROM setup
WHERE until_ms IS NOT NULL AND $__timeFilter(to_timestamp(from_ms / 1000.0))
GROUP BY 1 ORDER BY 1;

-- Runs stored per hour (time series)
SELECT date_trunc('hour', received) AS time, count(*) AS runs
FROM run
WHERE $__timeFilter(received)
GROUP BY 1 ORDER BY 1;

-- SPDX-License-Identifier: Apache-2.0
-- Conditions of a run become objects: kind, severity, rank, text. They were sentences, whose beginnings told the kind.
-- formats/earlier.c reads the conditions of old exports by the same lists, and a test compares the two. These lists stay
-- as they are here: they are the sentences of the versions before.
--
-- How large it gets: 60 bytes more a condition, and a run has about 3: 16 MB in ten years of a run an hour.
WITH kind (name, severity) AS MATERIALIZED (VALUES
    ('other', 'notice'), ('busy_cpus', 'warning'), ('load', 'warning'), ('cpu_pressure', 'warning'),
    ('memory_pressure', 'warning'), ('batch_job', 'warning'), ('kubernetes_pods', 'warning'), ('other_instance', 'warning'),
    ('cpu_quota', 'warning'), ('frequency_capped', 'warning'), ('throttled', 'warning'), ('steal', 'warning'),
    ('swap', 'warning'), ('outside_hours', 'info'), ('too_soon', 'info'), ('disturbing', 'notice'),
    ('topology_not_live', 'error'), ('memory', 'warning'), ('cgroup_memory', 'warning'), ('cpuset', 'warning'),
    ('mems', 'warning'), ('mpirun_missing', 'info'), ('numactl_missing', 'info'), ('thp_never', 'notice'),
    ('governor', 'notice'), ('frequency_cap', 'notice'), ('numa_balancing', 'notice'), ('virtual_machine', 'notice'),
    ('hyperthreads', 'info'), ('forced', 'warning'), ('launcher', 'info'), ('cgroup', 'info'),
    ('account', 'info'), ('machine', 'notice'), ('disturbed', 'warning'), ('placement', 'error'),
    ('migrated', 'warning'), ('memory_policy', 'notice'), ('few_samples', 'warning'), ('cache', 'warning'),
    ('topology', 'notice'), ('background_load', 'info'), ('knee', 'info'), ('pair', 'info'),
    ('import', 'notice'), ('import_undated', 'notice')),
mark (beginning, kind) AS (VALUES ('FORCED, ', 'forced'), ('DISTURBED: ', 'disturbed'), ('PLACEMENT: ', 'placement')),
sentence (place, beginning, kind) AS MATERIALIZED (VALUES
    (1, 'no control group', 'cgroup'), (2, 'its control group', 'cgroup'),
    (3, 'ranks run as ', 'account'), (4, 'whether CPUs and memory ', 'machine'),
    (5, 'mpirun did not end', 'launcher'), (6, 'numa_bench did not end', 'launcher'),
    (7, 'moved between CPUs ', 'migrated'), (8, 'only ', 'placement'),
    (9, 'the kernel moved pages ', 'placement'), (10, 'the kernel refused to bind ', 'memory_policy'),
    (11, 'memory is bound to ', 'memory_policy'), (12, 'the host took the CPU ', 'steal'),
    (13, 'arrays of ', 'cache'), (14, 'all ranks are on one NUMA node', 'topology'),
    (15, 'its node ', 'topology'), (16, 'pair ', 'pair'),
    (17, 'date: not known; when it was imported stands for it', 'import_undated'), (18, 'date: ', 'import'),
    (19, 'node: ', 'import'), (20, 'method: ', 'import'),
    (21, 'pages: ', 'import'), (22, 'mode: ', 'import'),
    (23, 'cells hold one value', 'import'))
UPDATE run SET conditions = (
    WITH marked (key, kind, rest) AS MATERIALIZED (
        SELECT c.key, coalesce(mark.kind, kind.name),
               CASE WHEN mark.kind IS NOT NULL THEN substr(c.value, length(mark.beginning) + 1)
                    WHEN kind.name IS NOT NULL THEN substr(c.value, length(kind.name) + 3)
                    ELSE c.value END
          FROM json_each(run.conditions) AS c
          LEFT JOIN mark ON instr(c.value, mark.beginning) = 1
          LEFT JOIN kind ON kind.name = substr(c.value, 1, instr(c.value, ': ') - 1) AND kind.name <> 'other'
    ), ranked (key, kind, rank, text) AS MATERIALIZED (
        SELECT key, kind,
               CASE WHEN rest GLOB 'rank [0-9]*' THEN CAST(substr(rest, 6) AS INTEGER) END,
               CASE WHEN rest GLOB 'rank [0-9]*' THEN ltrim(ltrim(substr(rest, 6), '0123456789'), ': ') ELSE rest END
          FROM marked
    ), known (key, kind, rank, text) AS MATERIALIZED (
        SELECT key, coalesce(kind, (SELECT s.kind FROM sentence AS s
                                     WHERE instr(text, s.beginning) = 1
                                     ORDER BY s.place LIMIT 1), 'other'), rank, text
          FROM ranked
    )
    SELECT json_group_array(json_object('kind', known.kind, 'severity', kind.severity, 'rank', rank, 'text', text))
      FROM (SELECT * FROM known ORDER BY key) AS known JOIN kind ON kind.name = known.kind)
 WHERE conditions LIKE '["%' AND json_valid(conditions);

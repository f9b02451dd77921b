// SPDX-License-Identifier: Apache-2.0
// The SQL of all statements that are prepared once, and those two that are made from the tables of
// a cell's and a rank's members.
#include "core/store/statements.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "model/record.h"

// Of the newest runs of a benchmark that succeeded on a node, those that runs to come resemble: of
// this hardware, set-up and method, and measured whole. Among the newest, so that runs of another
// set-up cost no more.
#define RUNS_LIKE_SQL                                                                              \
    "(SELECT id,class_hash,config_hash,method,source,n_ranks,started_ms,finished_ms,spec,"         \
    "coalesce(conditions,'') AS conditions "                                                       \
    "FROM run INDEXED BY run_node_benchmark_state WHERE node = ?1 AND benchmark = ?2 "             \
    "AND state = 'succeeded' ORDER BY id DESC LIMIT ?6) AS r "
#define IS_LIKE_SQL                                                                                \
    "r.class_hash = ?3 AND r.config_hash = ?4 AND r.method = ?5 AND r.source = 'measured' "        \
    "AND instr(r.conditions,'\"kind\":\"time_limit\"') = 0 "
#define DISTURBED_SQL "instr(r.conditions,'\"kind\":\"disturbed\"') > 0 "

// INDEXED BY, where SQLite, which guesses that each value of an index is equally rare, takes or may
// take one that fits most runs.
static const char *const sql[STORE_QUERIES] = {
    [Q_INSERT] = "INSERT INTO run (state,benchmark,node,created_ms,idempotency_key,spec,id) "
                 "VALUES ('queued',?1,?2,?3,?4,?5,?6)",
    [Q_BY_KEY] = "SELECT id, spec FROM run WHERE idempotency_key = ?1",
    [Q_GET] = "SELECT " RUN_COLUMNS " FROM run WHERE id = ?1",
    [Q_SIZE] = "SELECT n_ranks,n_cells,seq,label,topology_hash,"
               "(SELECT rowid FROM topology WHERE hash = run.topology_hash) FROM run WHERE id = ?1",
    [Q_NEXT] = "SELECT id FROM run WHERE state = 'queued' AND id > ?1 "
               "ORDER BY id LIMIT 1",
    [Q_QUEUE_LENGTH] = "SELECT count(*) FROM run WHERE state = 'queued'",
    [Q_STATE] = "SELECT state FROM run WHERE id = ?1",
    [Q_SETUP] = "SELECT class_hash,config_hash FROM run WHERE id = ?1",
    [Q_STARTED] = "UPDATE run SET state = 'running', started_ms = ?2, plan = ?3, conditions = ?4, "
                  "class_hash = ?5, config_hash = ?6, topology_hash = ?7 "
                  "WHERE id = ?1 AND state = 'queued'",
    [Q_FINISHED] = "UPDATE run SET state = ?2, seq = ?3, finished_ms = ?4, error = ?5, "
                   "error_member = ?6, error_text = ?7, method = ?8, n_ranks = ?9, n_cells = ?10, "
                   "conditions = coalesce(?11, conditions), phases = ?12, "
                   "plan = coalesce(?13, plan), "
                   "measured_ms = coalesce(measured_ms, started_ms, created_ms) WHERE id = ?1",
    [Q_NEXT_SEQ] = "UPDATE counter SET value = value + 1 WHERE name = 'seq' RETURNING value",
    [Q_FEED] = "SELECT name, (SELECT value FROM counter WHERE counter.name = 'seq') FROM identity",
    [Q_SEQ] = "SELECT value FROM counter WHERE name = 'seq'",
    [Q_CHANGES] = "SELECT seq, id, 0 FROM run WHERE seq > ?1 "
                  "UNION ALL SELECT seq, run_id, 1 FROM note WHERE seq > ?1 ORDER BY 1 LIMIT ?2",
    [Q_NOTE] = "SELECT seq, label, EXISTS (SELECT 1 FROM baseline_run WHERE run_id = run.id) "
               "FROM run WHERE id = ?1",
    [Q_TOUCH] = "UPDATE counter SET value = value WHERE name = 'seq'",
    [Q_CLOCK_STEPS] = "SELECT value FROM counter WHERE name = 'clock_steps'",
    [Q_OLD] = "SELECT id, created_ms FROM run WHERE id > ?1 AND seq IS NOT NULL AND label = '' "
              "AND NOT EXISTS (SELECT 1 FROM baseline_run WHERE run_id = run.id) "
              "AND id < (SELECT id FROM run WHERE seq IS NOT NULL ORDER BY id DESC LIMIT 1) "
              "ORDER BY id LIMIT 1",
    [Q_AFTER] = "SELECT id, created_ms FROM run WHERE id > ?1 ORDER BY id LIMIT 1",
    [Q_AGE_GET] = "SELECT name, value FROM counter WHERE name >= 'age.' AND name < 'age.gap.' "
                  "OR name >= 'age.gap/' AND name < 'age/'",
    [Q_AGE_PUT] = "INSERT OR REPLACE INTO counter VALUES (?1, ?2)",
    [Q_AGE_GAP_PUT] = "INSERT INTO counter VALUES (?1, ?2) "
                      "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
    // Steps of the clock from before the first run there is.
    [Q_AGE_GAPS_OLD] = "DELETE FROM counter WHERE name >= 'age.gap.' AND name < "
                       "printf('age.gap.%020d', (SELECT min(id) FROM run))",
    [Q_AGE_SINCE] = "SELECT coalesce(sum(value), 0) FROM counter "
                    "WHERE name >= ?1 AND name < 'age.gap/'",
    [Q_RUNNING] = "SELECT id FROM run WHERE state = 'running' ORDER BY id LIMIT 1",
    [Q_DELETE_CELLS] = "DELETE FROM cell WHERE run_id = ?1",
    [Q_DELETE] = "DELETE FROM run WHERE id = ?1",
    [Q_FINGERPRINT_PUT] = "INSERT OR IGNORE INTO fingerprint (hash,kind,json) VALUES (?1,?2,?3)",
    [Q_FINGERPRINT_GET] = "SELECT " JSON_COLUMN("json") " FROM fingerprint WHERE hash = ?1",
    [Q_TOPOLOGY_PUT] = "INSERT OR IGNORE INTO topology (hash,xml) VALUES (?1,?2)",
    [Q_MATRIX_PUT] = "INSERT INTO matrix (run_id,matrix,name,quantity,unit,row_axis,col_axis) "
                     "VALUES (?1,?2,?3,?4,?5,?6,?7)",
    [Q_MATRIX_GET] = "SELECT name,quantity,unit,row_axis,col_axis FROM matrix WHERE run_id = ?1 "
                     "ORDER BY matrix",
    [Q_MATRIX_COUNT] = "SELECT count(*) FROM matrix WHERE run_id = ?1",
    [Q_SERIES_PUT] = "INSERT INTO series (metric,node,variant,unit) "
                     "SELECT ?1,node,?2,?3 FROM run WHERE id = ?4 "
                     "ON CONFLICT (metric,node,variant) DO UPDATE SET unit = excluded.unit "
                     "WHERE unit <> excluded.unit",
    [Q_METRIC_PUT] = "INSERT OR REPLACE INTO metric (series,measured_ms,run_id,value_milli,"
                     "lo_milli,hi_milli) SELECT s.id,r.measured_ms,r.id,?4,?5,?6 FROM run AS r "
                     "CROSS JOIN series AS s "
                     "WHERE r.id = ?3 AND s.metric = ?1 AND s.node = r.node AND s.variant = ?2",
    [Q_METRIC_CLEAR] = "DELETE FROM metric WHERE run_id = ?1",
    [Q_METRICS_DONE] = "UPDATE run SET metrics_version = ?2 WHERE id = ?1",
    // A condition's text cannot have this: quotation marks are escaped there.
    [Q_SUMMARY] = "SELECT id,seq,state,benchmark,node,method,n_ranks,class_hash,config_hash,"
                  "topology_hash,started_ms,finished_ms,measured_ms,source,label,metrics_version,"
                  "instr(conditions,'\"kind\":\"forced\"') FROM run WHERE id = ?1",
    [Q_SUMMARY_METRICS] =
        "SELECT s.metric,s.unit,s.variant,m.value_milli,m.lo_milli,m.hi_milli "
        "FROM metric AS m INDEXED BY metric_run CROSS JOIN series AS s ON s.id = m.series "
        "WHERE m.run_id = ?1",
    [Q_SUMMARY_COUNT] = "SELECT count(*) FROM metric INDEXED BY metric_run WHERE run_id = ?1",
    [Q_TOPOLOGY_BY_HASH] = "SELECT xml FROM topology WHERE hash = ?1",
    // Of a later version too: its numaprobe was here before, and stored others under these names.
    [Q_METRICS_MISSING] = "SELECT id FROM run INDEXED BY run_without_metrics "
                          "WHERE state = 'succeeded' AND metrics_version < ?1 UNION ALL "
                          "SELECT id FROM run INDEXED BY run_without_metrics "
                          "WHERE state = 'succeeded' AND metrics_version > ?1 LIMIT 1",
    [Q_IMPORTED] = "UPDATE run SET source = 'imported', measured_ms = ?2, label = ?3, "
                   "started_ms = ?4, plan = ?5, class_hash = ?6, config_hash = ?7, "
                   "topology_hash = (SELECT hash FROM topology WHERE hash = ?8) WHERE id = ?1",
    [Q_IMPORT_BY_KEY] = "SELECT id FROM run WHERE idempotency_key = ?1",
    [Q_IMPORT_TWIN] = "SELECT id FROM run INDEXED BY run_started WHERE node = ?1 "
                      "AND started_ms = ?2 AND finished_ms = ?3 AND source = 'measured'",
    [Q_SERIES_COUNT] = "SELECT count(*) FROM (SELECT 1 FROM metric WHERE series = ?1 LIMIT ?2)",
    [Q_HISTORY] = "SELECT measured_ms,run_id,value_milli,lo_milli,hi_milli FROM metric "
                  "WHERE series = ?1 AND measured_ms >= ?2 AND measured_ms < ?3 "
                  "ORDER BY measured_ms DESC, run_id DESC LIMIT ?4",
    [Q_SERIES_BEFORE] = "SELECT measured_ms FROM metric WHERE series = ?1 AND measured_ms <= ?2 "
                        "ORDER BY measured_ms DESC LIMIT 1",
    [Q_LATEST] = "SELECT id FROM run INDEXED BY run_measured WHERE node = ?1 "
                 "AND source = 'measured' ORDER BY id DESC LIMIT 1",
    [Q_NEWEST_LIKE] =
        "SELECT id FROM run INDEXED BY run_node_benchmark_state WHERE node = ?1 AND benchmark = ?2 "
        "AND state = 'succeeded' AND source = 'measured' AND class_hash = ?3 "
        "AND method = ?4 ORDER BY id DESC LIMIT 1",
    [Q_METRIC_LIKE] =
        "SELECT r.id,m.value_milli FROM " RUNS_LIKE_SQL
        "CROSS JOIN metric AS m INDEXED BY metric_run ON m.run_id = r.id "
        "CROSS JOIN series AS s ON s.id = m.series WHERE " IS_LIKE_SQL
        "AND s.metric = ?7 AND instr(s.variant,?8) = 0 AND NOT " DISTURBED_SQL
        "ORDER BY instr(r.conditions,'\"kind\":\"few_samples\"') > 0, r.id DESC LIMIT 1",
    [Q_RUNS_LIKE] = "SELECT r.id,r.n_ranks,r.started_ms,r.finished_ms,"
                    "instr(r.conditions,'\"kind\":\"launcher\"') > 0,r.spec FROM " RUNS_LIKE_SQL
                    "WHERE " IS_LIKE_SQL "AND instr(r.conditions,'\"kind\":\"budget\"') = 0 "
                    "ORDER BY " DISTURBED_SQL ", r.id DESC",
    [Q_NEWEST_VALUES] =
        "SELECT s.id,s.metric,s.variant,s.unit,m.run_id,m.measured_ms,m.value_milli "
        "FROM series AS s INDEXED BY series_newest "
        "CROSS JOIN metric AS m INDEXED BY metric_run "
        "ON m.run_id = s.newest_run AND m.series = s.id "
        "WHERE s.node = ?1 AND s.newest_run > 0 "
        "ORDER BY s.newest_run DESC, s.id LIMIT ?2",
    [Q_NEWEST_COUNT] = "SELECT count(*) FROM (SELECT 1 FROM series INDEXED BY series_newest "
                       "WHERE node = ?1 AND newest_run > 0 LIMIT ?2)",
    [Q_PENDING] = "SELECT count(*) FROM ("
                  "SELECT 1 FROM run INDEXED BY run_without_metrics "
                  "WHERE state = 'succeeded' AND metrics_version < ?1 UNION ALL "
                  "SELECT 1 FROM run INDEXED BY run_without_metrics "
                  "WHERE state = 'succeeded' AND metrics_version > ?1 LIMIT ?2)",
    [Q_PENDING_OF_NODE] =
        "SELECT count(*) FROM ("
        "SELECT 1 FROM run INDEXED BY run_of_node "
        "WHERE state = 'succeeded' AND metrics_version < ?1 AND node = ?3 UNION ALL "
        "SELECT 1 FROM run INDEXED BY run_of_node "
        "WHERE state = 'succeeded' AND metrics_version > ?1 AND node = ?3 LIMIT ?2)",
    [Q_STATES] = "SELECT substr(name, 6), value FROM counter "
                 "WHERE name >= 'runs.' AND name < 'runs/'",
    [Q_BASELINES] = "SELECT b.name,b.created_ms,r.run_id FROM baseline AS b "
                    "JOIN baseline_run AS r ON r.name = b.name WHERE b.name = ifnull(?1,b.name) "
                    "ORDER BY b.name, r.run_id",
    [Q_BASELINE_PUT] = "INSERT INTO baseline (name,created_ms) VALUES (?1,?2)",
    [Q_BASELINE_RUN_PUT] = "INSERT INTO baseline_run (name,run_id) VALUES (?1,?2)",
    [Q_BASELINE_DROP] = "DELETE FROM baseline WHERE name = ?1",
    [Q_BASELINE_OF_RUN] = "SELECT name FROM baseline_run WHERE run_id = ?1 LIMIT 1",
    [Q_LABEL] = "UPDATE run SET label = ?2 WHERE id = ?1",
    [Q_TOPOLOGY_GET] = "SELECT t.xml FROM run JOIN topology AS t ON t.hash = run.topology_hash "
                       "WHERE run.id = ?1",
    [Q_LOG_PUT] = "INSERT INTO log (run_id,text) VALUES (?1,?2)",
    [Q_LOG_GET] = "SELECT text FROM log WHERE run_id = ?1",
};

// "median_milli", "n", "overlap_e4"
static void cell_column(enum cell_field f, char *out, size_t room)
{
    static const char *const suffix[] = {[CELL_IS_COUNT] = "",
                                         [CELL_IS_VALUE] = "_milli",
                                         [CELL_IS_SHARE] = "_e4",
                                         [CELL_IS_RATE] = "_milli"};
    snprintf(out, room, "%s%s", cell_fields[f].name, suffix[cell_fields[f].kind]);
}

double store_cell_scale(enum cell_field f)
{
    static const double scale[] = {[CELL_IS_COUNT] = 1,
                                   [CELL_IS_VALUE] = 1000,
                                   [CELL_IS_SHARE] = 10000,
                                   [CELL_IS_RATE] = 1000};
    return scale[cell_fields[f].kind];
}

void store_where(struct buf *out, const struct store_condition *list, size_t n)
{
    const char *word = "WHERE";
    for (size_t i = 0; i < n; i++)
        if (list[i].asked) {
            buf_fmt(out, "%s %s ", word, list[i].text);
            word = "AND";
        }
}

static int prepare_one(sqlite3 *db, sqlite3_stmt **queries, enum store_query q, const char *text,
                       struct err *err)
{
    int rc = sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &queries[q], NULL);
    return rc == SQLITE_OK ? 0 : sq_fail(err, db, rc, "prepare");
}

static int prepare_cells(sqlite3 *db, sqlite3_stmt **queries, struct err *err)
{
    CLEANUP_BUF struct buf put = BUF_INIT, get = BUF_INIT, marks = BUF_INIT;
    buf_str(&put, "INSERT INTO cell (run_id,matrix,row,col");
    buf_str(&get, "SELECT row,col");
    for (int f = 0; f < CELL_FIELDS; f++) {
        char column[40];
        cell_column(f, column, sizeof column);
        buf_fmt(&put, ",%s", column);
        buf_fmt(&get, ",%s", column);
        buf_fmt(&marks, ",?%d", f + 5);
    }
    buf_fmt(&put, ",distribution) VALUES (?1,?2,?3,?4%s,?%d)", buf_text(&marks), CELL_FIELDS + 5);
    buf_str(&get, ",distribution FROM cell WHERE run_id = ?1 AND matrix = ?2");
    if (!buf_ok(&put) || !buf_ok(&get) || !buf_ok(&marks))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for statements");
    return prepare_one(db, queries, Q_CELL_PUT, buf_text(&put), err) < 0 ||
                   prepare_one(db, queries, Q_CELL_GET, buf_text(&get), err) < 0
               ? -1
               : 0;
}

static int prepare_ranks(sqlite3 *db, sqlite3_stmt **queries, struct err *err)
{
    CLEANUP_BUF struct buf put = BUF_INIT, get = BUF_INIT, marks = BUF_INIT;
    buf_str(&put, "INSERT INTO rank (run_id,address,nodes");
    buf_str(&get, "SELECT address,nodes");
    for (int i = 0; i < RECORD_RANK_SLOTS; i++) {
        buf_fmt(&put, ",%s", record_rank_slots[i].name);
        buf_fmt(&get, ",%s", record_rank_slots[i].name);
        buf_fmt(&marks, ",?%d", i + 4);
    }
    buf_fmt(&put, ") VALUES (?1,?2,?3%s)", buf_text(&marks));
    buf_str(&get, " FROM rank WHERE run_id = ?1 ORDER BY rank");
    if (!buf_ok(&put) || !buf_ok(&get) || !buf_ok(&marks))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for statements");
    return prepare_one(db, queries, Q_RANK_PUT, buf_text(&put), err) < 0 ||
                   prepare_one(db, queries, Q_RANK_GET, buf_text(&get), err) < 0
               ? -1
               : 0;
}

int statements_prepare(sqlite3 *db, sqlite3_stmt **queries, struct err *err)
{
    for (int q = 0; q < STORE_QUERIES; q++)
        if (sql[q] && prepare_one(db, queries, q, sql[q], err) < 0)
            return err_prefix(err, "statement %d", q);
    return prepare_cells(db, queries, err) < 0 ? -1 : prepare_ranks(db, queries, err);
}

void statements_finalize(sqlite3_stmt **queries)
{
    for (int q = 0; q < STORE_QUERIES; q++) {
        sqlite3_finalize(queries[q]);
        queries[q] = NULL;
    }
}

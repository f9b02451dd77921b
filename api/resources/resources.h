// SPDX-License-Identifier: Apache-2.0
// The handlers that api/routes.c lists, one file a resource.
#pragma once
#include "api/services/services.h"
#include "base/jsonw.h"

int page_get(struct request *q, struct reply *r, struct err *err);
int openapi_get(struct request *q, struct reply *r, struct err *err);
int health_ready(struct request *q, struct reply *r, struct err *err);
int node_get(struct request *q, struct reply *r, struct err *err);
int topology_get(struct request *q, struct reply *r, struct err *err);
int topologies_get(struct request *q, struct reply *r, struct err *err);
int facts_get(struct request *q, struct reply *r, struct err *err);
int topology_xml(struct request *q, struct reply *r, struct err *err);
int topology_svg(struct request *q, struct reply *r, struct err *err);
int benchmarks_get(struct request *q, struct reply *r, struct err *err);
int availability_get(struct request *q, struct reply *r, struct err *err);
int runs_list(struct request *q, struct reply *r, struct err *err);
int runs_latest(struct request *q, struct reply *r, struct err *err);
int runs_create(struct request *q, struct reply *r, struct err *err);
int runs_show(struct request *q, struct reply *r, struct err *err);
int runs_label(struct request *q, struct reply *r, struct err *err);
int runs_cancel(struct request *q, struct reply *r, struct err *err);
int runs_delete(struct request *q, struct reply *r, struct err *err);
int runs_events(struct request *q, struct reply *r, struct err *err);
int matrix_get(struct request *q, struct reply *r, struct err *err);
int matrix_csv(struct request *q, struct reply *r, struct err *err);
int matrix_json(struct request *q, struct reply *r, struct err *err);
int matrix_ndjson(struct request *q, struct reply *r, struct err *err);
int distribution_json(struct request *q, struct reply *r, struct err *err);
int distribution_csv(struct request *q, struct reply *r, struct err *err);
int distribution_svg(struct request *q, struct reply *r, struct err *err);
int feed_get(struct request *q, struct reply *r, struct err *err);
int matrix_svg(struct request *q, struct reply *r, struct err *err);
int compare_svg(struct request *q, struct reply *r, struct err *err);
int compare_get(struct request *q, struct reply *r, struct err *err);
int report_get(struct request *q, struct reply *r, struct err *err);
int report_html(struct request *q, struct reply *r, struct err *err);
int report_markdown(struct request *q, struct reply *r, struct err *err);
int storage_get(struct request *q, struct reply *r, struct err *err);
int backup_get(struct request *q, struct reply *r, struct err *err);
int run_export(struct request *q, struct reply *r, struct err *err);
int imports_create(struct request *q, struct reply *r, struct err *err);
int history_svg(struct request *q, struct reply *r, struct err *err);
int history_get(struct request *q, struct reply *r, struct err *err);
int baselines_list(struct request *q, struct reply *r, struct err *err);
int baselines_show(struct request *q, struct reply *r, struct err *err);
int baselines_put(struct request *q, struct reply *r, struct err *err);
int baselines_delete(struct request *q, struct reply *r, struct err *err);
int check_get(struct request *q, struct reply *r, struct err *err);
int metrics_get(struct request *q, struct reply *r, struct err *err);
int log_get(struct request *q, struct reply *r, struct err *err);

// A run, with live progress where there is a runner: a worker has none.
int run_find(const struct api_services *api, int64_t id, struct run *out, struct err *err);

// "findings":[…] of the database, into an open object.
void storage_write_findings(const struct api_services *api, struct jsonw *w);

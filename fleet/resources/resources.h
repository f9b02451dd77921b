// SPDX-License-Identifier: Apache-2.0
// The handlers of the collector.
#pragma once
#include "http/messages/router.h"

// status.c, nodes.c: what the collector knows by itself
handler_fn fleetd_ready, fleetd_openapi, fleetd_status;
handler_fn fleetd_node_list, fleetd_node, fleetd_states;
work_fn fleetd_node_list_work; // the classes of nodes come from the history
// judged.c: what the history says. In the process that reads; fleetd_work() says so.
handler_fn fleetd_classes, fleetd_outliers, fleetd_tiles;
work_fn fleetd_work, fleetd_outliers_work;
handler_fn fleetd_racks; // racks.c: groups of nodes, in the same process
work_fn fleetd_racks_work;
work_fn fleetd_named_work; // nodes.c: the same, with NODES_FOLLOWED
// node_metrics.c: one node beside its peers, and its set-up. In the process that reads.
handler_fn fleetd_node_metrics;
// class.c: one class in full. In the process that reads.
handler_fn fleetd_class;
// rollouts.c: what changed, and what it did. In the process that reads.
handler_fn fleetd_rollouts, fleetd_effect;
// views.c: nodes in order of a metric, groups of them, and two runs. In the process that reads.
handler_fn fleetd_ranking, fleetd_compare;
// runs.c: for clients that judge by themselves. In the process that reads.
handler_fn fleetd_runs, fleetd_facts;
// feed.c: for another collector. In the process that reads.
handler_fn fleetd_feed;
// archive.c: a whole run. In the process that reads.
handler_fn fleetd_archive;
work_fn fleetd_archive_work;
// history.c: a metric of a node or a class over the years. In the process that reads.
handler_fn fleetd_history, fleetd_history_svg;
// page.c: the web page
handler_fn fleetd_page;
// campaigns.c: probes of many nodes. The list and one of them are read in the process that reads.
handler_fn fleetd_campaign_start, fleetd_campaign_cancel, fleetd_campaign_list, fleetd_campaign,
    fleetd_campaign_script;
// feeds.c: nodes that push, and the tokens that let them
handler_fn fleetd_feed_place, fleetd_feed_push, fleetd_feed_facts, fleetd_token_create;
handler_fn fleetd_token_revoke;
// metrics.c: for Prometheus. The process that reads makes what both need of the history.
handler_fn fleetd_metrics, fleetd_sd;
work_fn fleetd_metrics_work, fleetd_node_work;
// drain.c: which nodes to take out of service, as the last judgement says
handler_fn fleetd_drain;
// export.c: all values, for other programs
handler_fn fleetd_export;
work_fn fleetd_export_work;
// findings.c: what was found and is kept. Lists in the process that reads, marks in the collector.
handler_fn fleetd_findings, fleetd_finding, fleetd_finding_mark;

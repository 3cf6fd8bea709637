# RDMA: devices, connections, latency, bandwidth, load, incast, loss, pairs; lossless/ checks ports and switches.
SRC += verbs/addr.c verbs/bandwidth.c verbs/cm.c verbs/cmd.c verbs/conn.c verbs/counters.c verbs/crew.c verbs/dev.c \
	verbs/latency.c verbs/loops.c verbs/loops_bw.c verbs/loops_lat.c verbs/loops_lossy.c verbs/memory.c verbs/ops.c verbs/params.c \
	verbs/place.c verbs/serve.c verbs/session.c verbs/sniff.c verbs/state.c verbs/wait.c verbs/wc.c verbs/xrc.c
TESTS += verbs/loops_test.c verbs/serve_test.c verbs/counters_test.c verbs/memory_test.c verbs/sniff_test.c
TESTS += verbs/addr_test.c verbs/params_test.c
TESTS += verbs/load_test.c verbs/data_test.c
SRC += verbs/pairs_account.c verbs/pairs_fit.c verbs/pairs_judge.c verbs/pairs_plan.c verbs/pairs_schedule.c
TESTS += verbs/pairs_fit_test.c verbs/pairs_fleet_test.c verbs/pairs_judge_test.c verbs/pairs_schedule_test.c
FUZZ += verbs/order_fuzz.c
SRC += verbs/figure.c verbs/flow.c verbs/incast.c verbs/incast_cmd.c verbs/incast_report.c verbs/incast_run.c \
	verbs/load.c verbs/load_params.c verbs/probe.c
SRC += verbs/pace.c verbs/series.c
SRC += verbs/params_wire.c verbs/data.c
TESTS += verbs/wc_test.c verbs/meter_test.c verbs/defects_test.c
SRC += verbs/pairs_cmd.c verbs/pairs_doc.c verbs/pairs_fleet.c verbs/pairs_opts.c verbs/pairs_pair.c verbs/pairs_ranks.c \
	verbs/pairs_run.c verbs/pairs_sim.c verbs/pairs_table.c
SRC += verbs/lossless/dcb.c verbs/lossless/ethtool.c verbs/lossless/facts.c verbs/lossless/facts_port.c verbs/lossless/facts_qos.c verbs/lossless/facts_node.c
SRC += verbs/lossless/checks.c verbs/lossless/roce_link.c verbs/lossless/roce_qos.c verbs/lossless/roce_live.c verbs/lossless/ib.c
SRC += verbs/lossless/profile.c verbs/lossless/profile_learn.c verbs/lossless/roce.c verbs/lossless/ib_table.c \
	verbs/lossless/summary.c verbs/lossless/equal.c verbs/lossless/others.c verbs/lossless/live.c verbs/lossless/check_cmd.c
SRC += verbs/lossless/tree.c verbs/lossless/tree_dcb.c verbs/lossless/tree_text.c
TESTS += verbs/lossless/facts_test.c
TESTS += verbs/lossless/dcb_test.c verbs/lossless/ethtool_test.c
FUZZ += verbs/lossless/dcb_fuzz.c
SRC += verbs/lossless/tree_anon.c verbs/lossless/tree_record.c
TESTS += verbs/lossless/tree_test.c
TESTS += verbs/lossless/checks_test.c verbs/lossless/live_test.c verbs/lossless/odd_test.c
SRC += verbs/lossless/tree_words.c verbs/lossless/tree_net.c
SRC += verbs/lossless/switch.c verbs/lossless/switch_sonic.c verbs/lossless/switch_nvue.c verbs/lossless/switch_checks.c \
	verbs/lossless/switch_queue.c verbs/lossless/switch_range.c verbs/lossless/switch_table.c verbs/lossless/switch_cmd.c verbs/lossless/switch_lldp.c
TESTS += verbs/lossless/profile_test.c verbs/lossless/others_test.c
TESTS += verbs/lossless/switch_test.c verbs/lossless/switch_fault_test.c verbs/lossless/switch_lldp_test.c
FUZZ += verbs/lossless/switch_fuzz.c
SRC += verbs/lossless/facts_pci.c
TESTS += verbs/lossless/pci_test.c verbs/lossless/drive_test.c verbs/lossless/fw_test.c
SRC += verbs/reach.c verbs/incast_peers.c verbs/lossless/drive.c verbs/lossless/drive_opts.c verbs/lossless/drive_path.c verbs/lossless/drive_peer.c \
	verbs/lossless/drive_tell.c verbs/lossless/facts_fw.c verbs/lossless/ranks.c
SRC += verbs/loss.c verbs/loss_cmd.c verbs/loss_fit.c verbs/loss_maker.c verbs/loss_report.c verbs/loss_run.c verbs/loss_table.c
TESTS += verbs/loss_fit_test.c verbs/loss_test.c

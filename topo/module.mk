# What is near what in a node, its plan, checks of a node (node/) and of an InfiniBand fabric (fabric/).
SRC += topo/model.c topo/load.c topo/cpus.c topo/pci.c topo/netdev.c topo/rdma.c topo/path.c topo/names.c \
	topo/affinity.c topo/text.c topo/json.c topo/svg.c topo/cmd.c
TESTS += topo/topo_test.c topo/robust_test.c
SRC += topo/plan.c topo/plan_nics.c topo/plan_match.c topo/plan_cpus.c topo/plan_out.c topo/nccl_path.c topo/matrix.c \
	topo/fingerprint.c topo/fingerprint_json.c topo/fingerprint_diff.c topo/compare.c
SRC += topo/nccl_xml.c topo/nccl_xml_tags.c topo/nccl_xml_end.c topo/nccl_xml_out.c
SRC += topo/memattr.c topo/hwloc_xml.c topo/hwloc_xml_check.c topo/hwloc_import.c topo/hwloc_fast.c
TESTS += topo/nccl_xml_test.c topo/nccl_xml_out_test.c topo/nccl_xml_robust_test.c
FUZZ += topo/nccl_xml_fuzz.c
SRC += topo/smi.c topo/smi_words.c
FUZZ += topo/hwloc_xml_fuzz.c topo/smi_fuzz.c
SRC += topo/fabric/model.c topo/fabric/lines.c topo/fabric/words.c topo/fabric/discover.c topo/fabric/ports.c \
	topo/fabric/linkinfo.c topo/fabric/counters.c topo/fabric/live.c topo/fabric/shape.c topo/fabric/rails.c \
	topo/fabric/rails_words.c topo/fabric/expect.c topo/fabric/judge.c topo/fabric/judge_links.c topo/fabric/judge_ends.c \
	topo/fabric/judge_leaves.c topo/fabric/report.c topo/fabric/fabric_cmd.c
CFLAGS_topo/fabric/live.c := $(if $(filter 1,$(HAVE_IBNETDISC)),-DHAVE_IBNETDISC $(IBNETDISC_CFLAGS))
TESTS += topo/manifest_test.c topo/hwloc_xml_test.c topo/smi_test.c
TESTS += topo/plan_test.c topo/plan_out_test.c topo/fingerprint_test.c
TESTS += topo/fabric/files_test.c topo/fabric/judge_test.c topo/fabric/expect_test.c topo/fabric/robust_test.c \
	topo/fabric/linkinfo_test.c topo/fabric/rails_test.c
SRC += topo/svg_links.c
FUZZ += topo/fabric/discover_fuzz.c topo/fabric/linkinfo_fuzz.c topo/fabric/counters_fuzz.c topo/fabric/list_fuzz.c
FUZZ += topo/fingerprint_fuzz.c
SRC += topo/node/node.c topo/node/roles.c topo/node/gpu.c topo/node/gpu_nvml.c topo/node/expect.c topo/node/fleet.c \
	topo/node/pci_links.c topo/node/pci_config.c topo/node/placement.c topo/node/host.c topo/node/ports.c \
	topo/node/inventory.c topo/node/symmetry.c topo/node/health.c topo/node/shape.c topo/node/learn.c \
	topo/node/watch.c topo/node/table.c topo/node/cmd.c
TESTS += topo/node/node_test.c topo/node/inventory_test.c topo/node/gpu_test.c
FUZZ += topo/node/node_fuzz.c
LDFLAGS_topo/node/gpu_test.c = -rdynamic

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# topo from files: a recorded tree as a tar file, hwloc's XML, nvidia-smi's matrix. Statuses, the JSON's new keys, that
# every refusal says what helps, and that a tar file leaves nothing behind.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" topo-files
prefix=(topo)
data=$top/topo/testdata
mkdir "$work/tmp"
export TMPDIR=$work/tmp

# --- hwloc's XML ---
for name in llnl-cts1-pascal power8gpudistances qemu-q35-2numa-2switch-hmat nvidiaDGX2-v3format; do
	gzip -dc "$data/hwloc-xml/$name.xml.gz" >"$work/$name.xml"
done
run --hwloc-xml "$work/llnl-cts1-pascal.xml" --json
ends hwloc-xml 0
holds hwloc-xml-source '.source == "hwloc-xml" and .recorded'
holds hwloc-xml-paths '[.gpus[].nics[0] | {name, path}] == [{name: "mlx5_0", path: "PIX"}, {name: "mlx5_0", path: "PIX"}]'
holds hwloc-xml-bandwidth '.nics[] | select(.name == "mlx5_0") | .link.bandwidth > 15.7e9 and .link.speed == null'
run --hwloc-xml "$work/power8gpudistances.xml" --matrix
ends hwloc-xml-matrix 0
says hwloc-xml-nvlink 'NV2'
run --hwloc-xml "$work/qemu-q35-2numa-2switch-hmat.xml" --json
holds hwloc-xml-memory '.numa_nodes[0].access == [{from: 0, latency_ns: 90, bandwidth: 214748364800}]'
run --hwloc-xml "$work/nvidiaDGX2-v3format.xml"
ends hwloc-xml-3 2
says hwloc-xml-3-remedy 'export-xml-flags v2'
head -c 5000 "$work/llnl-cts1-pascal.xml" >"$work/cut.xml"
run --hwloc-xml "$work/cut.xml"
ends hwloc-xml-cut 2
run --hwloc-xml "$data/smi/levante_4gpu_2nic_topo_mp.txt"
ends hwloc-xml-no-xml 2

# --- nvidia-smi's matrix ---
run --smi "$data/smi/levante_4gpu_2nic_topo_mp.txt" --json
ends smi 0
holds smi-nearest '[.gpus[] | .nics[0].path] == ["SYS", "PIX", "PIX", "SYS"]'
holds smi-no-address '.source == "nvidia-smi" and .pci == [] and .gpus[0].bdf == null and .gpus[3].numa == 5'
head -n 4 "$data/smi/levante_4gpu_2nic_topo_mp.txt" >"$work/cut.txt"
run --smi "$work/cut.txt"
ends smi-cut 2
says smi-cut-says 'none for GPU3'
run --smi "$work/power8gpudistances.xml"
ends smi-xml 2
says smi-xml-remedy '--hwloc-xml'

# --- tar files ---
run --sysroot "$data/sysfs/hwloc-40intel64-2g2n4c+pcilocality.tar.bz2" --json
if grep -q 'built without libarchive' "$work/err"; then
	ends tar-without-libarchive 2
	says tar-without-remedy 'tar -xf'
	echo 'skip topo-files.tar: built without libarchive'
else
	ends tar 0
	holds tar-reading '.source == "sysroot" and (.rdma_devices[0] | .name == "qib0" and .numa == 2)'
	run --sysroot "$data/sysfs/gpud-sys-class-infiniband-h100.0.tar.gz" --json
	ends tar-rdma-alone 0
	holds tar-rdma-ports '[.rdma_devices[].ports[] | select(.link_layer == "InfiniBand" and .rate_bps == 4e11)] | length == 8'
	tar -C "$top/topo" -cJf "$work/none.tar.xz" topo.h
	run --sysroot "$work/none.tar.xz"
	ends tar-no-machine 2
	says tar-no-machine-says 'records no machine'
fi
run --sysroot "$work/cut.txt"
ends tar-no-tar 2
verdict tar-leaves-nothing "$(find "$work/tmp" -mindepth 1 | head -n 3)"

# --- together ---
run --hwloc-xml "$work/cut.xml" --smi "$work/cut.txt"
ends two-sources 2
says two-sources-says 'exclude each other'

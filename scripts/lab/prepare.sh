# shellcheck shell=bash
# shellcheck disable=SC2154 # lab_here is set by the caller
# SPDX-License-Identifier: Apache-2.0
#
# What the lab boots: a kernel with Soft-RoCE and an initramfs, made once and kept in a cache.
# Sourced by "lab". Sets, for the caller: lab_busybox, lab_vmlinux, lab_initramfs, lab_version, lab_modules.
#
# The kernel is one that is installed under /boot, else one in the cache, else the package that
# linux-image-amd64 depends on, fetched with apt-get download and unpacked: no root, nothing installed.
# Functions that find the lab impossible here print one line (reason and remedy) to stderr and return 77.

# Loaded in the initramfs, in this order, with what they depend on. crc32_generic is a soft dependency of
# rdma_rxe that no table names: without it "rdma link add" fails with "No such file or directory".
lab_module_list="crc32_generic virtio_pci virtio_net 9pnet_virtio 9p overlay ib_core ib_uverbs rdma_ucm
	rdma_cm rdma_rxe sch_netem"

lab_cannot() {
	printf 'lab: cannot run here: %s\n' "$*" >&2
	return 77
}

lab_find_tool() { # NAME PACKAGE
	command -v "$1" >/dev/null 2>&1 || lab_cannot "$1 is missing; install it: apt-get install $2"
}

# The tools that both a run and its preparation need.
lab_tools() {
	local tool
	[[ $(uname -m) == x86_64 ]] || lab_cannot "the guests are x86-64 and this machine is $(uname -m)" || return
	for tool in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static modprobe:kmod depmod:kmod ip:iproute2 \
		rdma:iproute2 tc:iproute2 setpriv:util-linux flock:util-linux sha256sum:coreutils od:coreutils; do
		lab_find_tool "${tool%%:*}" "${tool#*:}" || return
	done
	lab_busybox=$(command -v busybox)
	lab_busybox=$(readlink -f "$lab_busybox")
	# A dynamic busybox would not start in an initramfs that holds nothing else.
	if head -c 4096 "$lab_busybox" | LC_ALL=C grep -aq ld-linux; then
		lab_cannot "$lab_busybox is not static; install it: apt-get install busybox-static" || return
	fi
	# QEMU's 9p server goes through /proc/self/fd; without it no file can be copied up in a guest.
	[[ -e /proc/self/fd ]] || lab_cannot "/proc is not mounted; mount it: mount -t proc proc /proc"
}

lab_cache_dir() {
	if [[ -n ${FABRICBENCH_LAB_CACHE:-} ]]; then
		lab_cache=$FABRICBENCH_LAB_CACHE
	elif [[ -n ${XDG_CACHE_HOME:-} ]]; then
		lab_cache=$XDG_CACHE_HOME/fabricbench/lab
	elif [[ -n ${HOME:-} ]]; then
		lab_cache=$HOME/.cache/fabricbench/lab
	else
		lab_cannot "no place for the cache, HOME is not set; set FABRICBENCH_LAB_CACHE to a folder"
		return
	fi
	[[ $lab_cache == /* ]] || lab_cache=$PWD/$lab_cache
}

# Kernels at hand, one a line: "ROOT VERSION", installed ones first, newest first in each place.
lab_kernels() {
	local root image
	for root in "" "$lab_cache"/kernel/*; do
		for image in "$root"/boot/vmlinuz-*; do
			[[ -r $image && -r $root/lib/modules/${image##*/vmlinuz-}/modules.dep ]] || continue
			printf '%s %s\n' "${root:-/}" "${image##*/vmlinuz-}"
		done | sort -rV
	done
}

# The files of the modules (or nothing where built in) for kernel VERSION under ROOT, in loading order.
lab_module_files() { # ROOT VERSION
	local module line
	for module in $lab_module_list; do
		line=$(modprobe -d "$1" -S "$2" --show-depends "$module" 2>/dev/null) || return 1
		printf '%s\n' "$line"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

lab_kernel_fits() { # ROOT VERSION
	local module
	for module in $lab_module_list; do
		modprobe -d "$1" -S "$2" --show-depends "$module" >/dev/null 2>&1 || return 1
	done
}

# The package that the metapackage stands for; a glob over linux-image-* would fetch every kernel there is.
lab_kernel_package() {
	command -v apt-cache >/dev/null 2>&1 || return 1
	apt-cache depends linux-image-amd64 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }'
}

lab_fetch_kernel() {
	local package work
	package=$(lab_kernel_package) || package=
	if [[ -z $package ]]; then
		lab_cannot "no kernel with rdma_rxe under /boot or in $lab_cache, and apt knows no linux-image-amd64;" \
			"run apt-get update, or install a Debian kernel"
		return
	fi
	work=$(mktemp -d "$lab_cache/fetch.XXXXXX")
	printf 'lab: fetching %s into %s\n' "$package" "$lab_cache" >&2
	if ! (cd "$work" && timeout 600 apt-get -q -o APT::Sandbox::User=root download "$package" >log 2>&1) ||
		! dpkg-deb -x "$work"/*.deb "$work/root" 2>>"$work/log"; then
		lab_cannot "$package cannot be fetched ($(tail -n 1 "$work/log" 2>/dev/null));" \
			"run apt-get update and check the network, or install the package" || true
		rm -rf "$work"
		return 77
	fi
	# Drivers that no guest has hardware for are two thirds of the package.
	rm -rf "$work"/root/usr "$work"/root/lib/modules/*/kernel/{sound,drivers/{gpu,media,staging,iio,hid,usb}} \
		"$work"/root/lib/modules/*/kernel/drivers/net/{wireless,usb} "$work"/root/boot/System.map-*
	depmod -b "$work/root" "$(basename "$work"/root/lib/modules/*)"
	mkdir -p "$lab_cache/kernel"
	[[ -d $lab_cache/kernel/$package ]] || mv "$work/root" "$lab_cache/kernel/$package"
	rm -rf "$work"
}

# First fitting kernel into lab_root and lab_version.
lab_choose_kernel() {
	local root version
	while read -r root version; do
		if lab_kernel_fits "$root" "$version"; then
			lab_root=$root
			lab_version=$version
			return 0
		fi
	done < <(lab_kernels)
	return 1
}

# vmlinuz holds a compressed ELF image; QEMU boots the bare ELF (PVH) some six seconds sooner under TCG.
# The place of the payload stands in the setup header (Documentation/x86/boot.rst: 0x1f1, 0x248, 0x24c).
lab_extract_vmlinux() { # VMLINUZ OUT
	local sects offset length magic tool
	sects=$(od -An -tu1 -j $((0x1f1)) -N1 "$1")
	offset=$(od -An -tu4 -j $((0x248)) -N4 "$1")
	length=$(od -An -tu4 -j $((0x24c)) -N4 "$1")
	offset=$(((sects + 1) * 512 + offset))
	magic=$(od -An -tx1 -j "$offset" -N4 "$1")
	# The last four bytes of an xz or zstd payload are the unpacked size, no part of the stream.
	case $magic in
	" fd 37 7a 58") tool=xz length=$((length - 4)) ;;
	" 28 b5 2f fd") tool=zstd length=$((length - 4)) ;;
	" 1f 8b"*) tool=gzip ;;
	*) return 1 ;;
	esac
	dd if="$1" bs=1M iflag=skip_bytes,count_bytes skip="$offset" count="$length" status=none | "$tool" -dcq >"$2" 2>/dev/null &&
		[[ $(od -An -tx1 -N4 "$2") == " 7f 45 4c 46" ]]
}

# Sets lab_vmlinux; kept apart from the initramfs, which changes more often.
lab_make_vmlinux() { # ROOT VERSION
	local image=${1%/}/boot/vmlinuz-$2 config=${1%/}/boot/config-$2
	lab_vmlinux=$lab_cache/vmlinux/$2-$(stat -c %s-%Y "$image")
	[[ ! -s $lab_vmlinux ]] || return 0
	mkdir -p "$lab_cache/vmlinux"
	set -- "$@" "$lab_vmlinux"
	if grep -qs '^CONFIG_PVH=y' "$config" && lab_extract_vmlinux "$image" "$3.new"; then
		mv "$3.new" "$3"
	else
		cp "$image" "$3.new" && mv "$3.new" "$3"
	fi
}

lab_make_initramfs() { # ROOT VERSION OUT
	local work file name
	work=$(mktemp -d "$lab_cache/initramfs.XXXXXX")
	mkdir -p "$work"/{bin,dev,proc,sys,lower,rw,new,modules}
	cp "$lab_busybox" "$work/bin/busybox"
	install -m 755 "$lab_here/init" "$work/init"
	install -m 755 "$lab_here/guest-init" "$work/guest-init"
	while read -r file; do
		name=${file##*/}
		case $name in
		*.ko.xz) xz -dc "$file" >"$work/modules/${name%.xz}" ;;
		*.ko.zst) zstd -qdc "$file" >"$work/modules/${name%.zst}" ;;
		*.ko.gz) gzip -dc "$file" >"$work/modules/${name%.gz}" ;;
		*) cp "$file" "$work/modules/$name" ;;
		esac
		name=${name%%.ko*}
		printf '%s\n' "$name.ko" >>"$work/modules/order"
	done < <(lab_module_files "$1" "$2")
	# Not compressed: unpacking costs an emulated CPU more than reading a few more megabytes.
	(cd "$work" && find . | LC_ALL=C sort | "$lab_busybox" cpio -o -H newc -R 0:0 2>/dev/null) >"$3"
	rm -rf "$work"
}

# What the prepared files depend on, in one word.
lab_key() {
	{
		cat "$lab_here/init" "$lab_here/guest-init" "$lab_here/prepare.sh"
		stat -c '%n %s %Y' "$lab_busybox" /boot/vmlinuz-* "$lab_cache"/kernel/*/boot/vmlinuz-* 2>/dev/null || true
	} | sha256sum | cut -c 1-16
}

lab_use() { # READY-FOLDER
	local root
	{ read -r root && read -r lab_version && read -r lab_vmlinux; } <"$1/kernel" || return 1
	lab_initramfs=$1/initramfs
	lab_modules=${root%/}/lib/modules/$lab_version
	[[ -s $lab_initramfs && -s $lab_vmlinux && -d $lab_modules ]]
}

lab_build() {
	local work ready
	if ! lab_choose_kernel; then
		lab_fetch_kernel || return
		lab_choose_kernel ||
			lab_cannot "the kernel in $lab_cache/kernel lacks one of the modules the lab needs; remove that folder" || return
	fi
	# The fetched kernel is part of the key, so the key is made anew.
	ready=$lab_cache/ready/$(lab_key)
	if [[ -d $ready ]] && lab_use "$ready"; then
		return 0
	fi
	work=$(mktemp -d "$lab_cache/build.XXXXXX")
	lab_make_vmlinux "$lab_root" "$lab_version"
	lab_make_initramfs "$lab_root" "$lab_version" "$work/initramfs"
	printf '%s\n' "$lab_root" "$lab_version" "$lab_vmlinux" >"$work/kernel"
	mkdir -p "$lab_cache/ready"
	rm -rf "$ready"
	mv "$work" "$ready"
	# Sets that nobody has booted for a week belong to older trees or kernels.
	find "$lab_cache/ready" -mindepth 1 -maxdepth 1 -mtime +7 -exec rm -rf {} +
	lab_use "$ready"
}

# Makes everything ready, at most once for all labs that start together.
lab_prepare() {
	local ready rc=0 lock
	lab_tools || return
	lab_cache_dir || return
	mkdir -p "$lab_cache" 2>/dev/null && [[ -w $lab_cache ]] ||
		lab_cannot "the cache $lab_cache cannot be written; set FABRICBENCH_LAB_CACHE to a folder that can" || return
	ready=$lab_cache/ready/$(lab_key)
	if [[ -d $ready ]] && lab_use "$ready"; then
		touch "$ready"
		return 0
	fi
	exec {lock}>"$lab_cache/lock"
	flock -w 900 "$lock" || lab_cannot "another lab has been preparing $lab_cache for 15 minutes" || return
	lab_build || rc=$?
	exec {lock}>&-
	return "$rc"
}

# Says whether the lab can run; fetches and writes nothing.
lab_check() {
	local package
	lab_tools || return
	lab_cache_dir || return
	if lab_choose_kernel; then
		printf 'lab: can run, with the kernel %s\n' "$lab_version"
		return 0
	fi
	package=$(lab_kernel_package) || package=
	if [[ -n $package ]] && command -v dpkg-deb >/dev/null 2>&1; then
		printf 'lab: can run once %s is fetched (about 70 MB): scripts/lab/lab --prepare\n' "$package"
		return 0
	fi
	lab_cannot "no kernel with rdma_rxe under /boot or in $lab_cache, and apt knows no linux-image-amd64;" \
		"run apt-get update, or install a Debian kernel"
}

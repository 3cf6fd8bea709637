#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# scripts/setup against faked systems: what it refuses, what it asks apt for, and that it stays silent when all
# is there. A fake dpkg-query says what is installed, a fake apt-get writes down what it is asked. Nothing real is
# touched, and no fake ever answers for more than the case it is in.

set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A tree of its own: an installation makes setup forget what the tree's build had detected.
mkdir -p "$work/tree/scripts" "$work/tree/build/gcc"
cp "$top/scripts/setup" "$top/scripts/lib.sh" "$work/tree/scripts/"
top=$work/tree
bin=$work/bin
bad=0

fake() { # NAME: body on standard input
	mkdir -p "$bin"
	{ echo '#!/bin/sh'; cat; } >"$bin/$1"
	chmod +x "$bin/$1"
}

# A Debian where everything of build, run and lab is installed but what is named.
fresh_system() { # MISSING...
	local name
	rm -rf "$bin"
	: >"$work/asked"
	: >"$work/simulation"
	"$top/scripts/setup" --list | awk 'NR > 1 { print "ii " $3 " 1.0-1" }' >"$work/installed"
	for name in "$@"; do
		grep -v "^ii $name " "$work/installed" >"$work/rest"
		mv "$work/rest" "$work/installed"
	done
	cp "$work/installed" "$work/after"
	for name in "$@"; do echo "ii $name 1.0-1" >>"$work/after"; done
	printf 'ID=debian\nVERSION_ID="12"\n' >"$work/os-release"
	fake dpkg-query <<<"cat '$work/installed'"
	fake id <<<'echo 0'
	fake sleep <<<':'
	fake apt-get <<-FAKE
		echo "\$*" >>'$work/asked'
		case " \$* " in
		*' -s '*) cat '$work/simulation' ;;
		*' install '*) cp '$work/after' '$work/installed' ;;
		esac
	FAKE
}

setup() { # ARGUMENT...: sets status, out
	status=0
	out=$(env -u MPICC PATH="$bin:$PATH" FABRICBENCH_OS_RELEASE="$work/os-release" "$top/scripts/setup" "$@" 2>&1 </dev/null) ||
		status=$?
}

expect() { # NAME STATUS TEXT: TEXT is an extended regular expression in the output, '' for none
	local why=''
	if [[ $status != "$2" ]]; then why="status $status, not $2"; fi
	if [[ -z $why && -n $3 ]] && ! grep -qE -- "$3" <<<"$out"; then why="nothing in its output matches '$3'"; fi
	verdict "$1" "$why"
}

verdict() { # NAME WHY
	if [[ -z $2 ]]; then
		echo "ok $1"
	else
		echo "not ok $1: $2"
		printf '%s\n' "$out"
		bad=1
	fi
}

never_installed() { # NAME: neither update nor install was asked for, simulations aside
	local asked
	asked=$(grep -vE '^-s |(^| )-s ' "$work/asked" || true)
	verdict "$1" "${asked:+apt-get was asked for: $asked}"
}

fresh_system
setup
expect nothing-missing 0 ''
verdict nothing-missing-asks-nothing "$(cat "$work/asked")"

fresh_system libhwloc-dev gnuplot-nox
echo 'Inst libhwloc-dev (2.9.0-1 Debian:12 [amd64])' >"$work/simulation"
: >"$top/build/gcc/config.mk"
setup
expect installs-what-is-missing 0 ''
verdict install-makes-make-look-again "$(ls "$top/build/gcc")"
asked=$(grep -E ' install ' "$work/asked" | grep -v -- '-s ')
verdict fetches-then-installs "$([[ $(grep -o -- '--download-only\|--no-download' <<<"$asked" | tr '\n' ' ') = \
	'--download-only --no-download ' ]] || echo "asked: $asked")"
verdict installs-only-that "$(grep -v ' install gnuplot-nox libhwloc-dev$' <<<"$asked" || true)"
verdict no-recommends "$(grep -v -e '--no-install-recommends --no-remove ' <<<"$asked" || true)"
verdict update-then-simulate-then-install "$(awk '
	/ update$/ { u = NR } /-s / { s = NR } / install / && !/-s / { i = NR }
	END { if (!(u && u < s && s < i)) print "order: update " u+0 ", simulation " s+0 ", install " i+0 }' "$work/asked")"

fresh_system jq
echo 'Inst jq (1.6-2.1 Debian:12 [amd64])' >"$work/simulation"
setup
expect other-groups-are-not-asked-for 0 ''
verdict other-groups-ask-nothing "$(cat "$work/asked")"
setup test
expect group-test 0 ''

fresh_system libhwloc-dev
fake ofed_info <<<'echo MLNX_OFED_LINUX-24.10'
setup
expect vendor-ofed_info 3 'vendor.s RDMA stack.*ofed_info'
expect refusal-lists-names 3 'libhwloc-dev +libhwloc-dev +hwloc-devel'
never_installed vendor-ofed_info-installs-nothing

fresh_system libhwloc-dev
echo 'ii libibverbs1 2410mlnx54-1.2410068' >>"$work/installed"
setup
expect vendor-libibverbs1 3 'libibverbs1 is the vendor.s \(2410mlnx54'
never_installed vendor-libibverbs1-installs-nothing

fresh_system libhwloc-dev
echo 'ii doca-ofed 2.9.1-0.1.4' >>"$work/installed"
setup
expect vendor-doca 3 'doca-ofed'

fresh_system
fake ofed_info <<<'echo MLNX_OFED_LINUX-24.10'
setup
expect vendor-with-nothing-missing 0 ''

fresh_system libopenmpi-dev
printf '%s\n' 'Remv mpich [4.0.2-3]' 'Inst libopenmpi-dev (4.1.4-3 Debian:12 [amd64])' >"$work/simulation"
setup
expect removal 3 'mpich would be removed'
never_or=$(grep -E ' install ' "$work/asked" | grep -v -- '-s ' || true)
verdict removal-installs-nothing "${never_or:+asked: $never_or}"

fresh_system libxml2-dev
echo 'Inst libxml2 [2.9.14+dfsg-2] (2.9.14+dfsg-1.3 Debian:12 [amd64])' >"$work/simulation"
setup
expect downgrade 3 'libxml2 would be downgraded'

fresh_system librdmacm-dev
echo 'Inst libibverbs1 [39.1-1] (44.0-2 Debian:12 [amd64])' >"$work/simulation"
setup
expect replacement 3 'libibverbs1 would be replaced'

fresh_system libc6-dev
printf '%s\n' 'Inst libc6 [2.36-9+deb12u9] (2.36-9+deb12u10 Debian:12 [amd64])' >"$work/simulation"
setup
expect point-release-update-is-fine 0 ''

fresh_system libhwloc-dev
setup --no-install
expect no-install-of-a-must 3 'nothing was installed: as --no-install asks'
verdict no-install-asks-nothing "$(cat "$work/asked")"

fresh_system gnuplot-nox
setup --no-install
expect no-install-goes-on 0 'going on without gnuplot-nox'
verdict no-install-goes-on-asks-nothing "$(cat "$work/asked")"

fresh_system gnuplot-nox
setup --check
expect check 3 'gnuplot-nox'

fresh_system gnuplot-nox
echo 'Inst gnuplot-nox (5.4.4 Debian:12 [amd64])' >"$work/simulation"
setup --simulate
expect simulate 0 '^Inst gnuplot-nox'
never_installed simulate-installs-nothing

fresh_system gnuplot-nox
fake apt-get <<-FAKE
	echo "\$*" >>'$work/asked'
	case " \$* " in
	*' update '*) echo 'E: no network' >&2; exit 100 ;;
	*) echo 'E: Unable to locate package gnuplot-nox'; exit 100 ;;
	esac
FAKE
setup
expect no-network 3 'apt-get update failed three times'
expect no-network-names-the-cause 3 'Unable to locate package'

fresh_system gnuplot-nox
fake id <<<'echo 1000'
fake sudo <<<'exit 1'
setup
expect no-root 3 'sudo asks for a password'

fresh_system
# A system without dpkg: what it has can only be seen, and nothing may be installed.
printf 'ID="rocky"\nID_LIKE="rhel centos fedora"\n' >"$work/os-release"
# Nothing but the shell's own tools in PATH, so that whatever this machine has is not seen.
for tool in bash env sh sed awk grep cut sort tr tail cat uname dirname find; do
	ln -sf "$(command -v "$tool")" "$bin/$tool"
done
status=0
out=$(PATH=$bin FABRICBENCH_OS_RELEASE="$work/os-release" "$top/scripts/setup" 2>&1 </dev/null) || status=$?
expect other-system 3 'rocky is no Debian or Ubuntu system'
expect other-system-lists-its-names 3 ' onednn-devel |pkgconf-pkg-config'
verdict other-system-asks-nothing "$(cat "$work/asked")"

fresh_system libdnnl-dev libopenmpi-dev openmpi-bin
MPICC=/opt/site/bin/mpicc
status=0
out=$(env MPICC=$MPICC PATH="$bin:$PATH" FABRICBENCH_OS_RELEASE="$work/os-release" "$top/scripts/setup" --check 2>&1) || status=$?
expect site-mpi 3 'libdnnl-dev'
verdict site-mpi-is-not-replaced "$(grep -o 'libopenmpi-dev' <<<"$out" || true)"

setup --instal
expect unknown-argument 2 "unknown argument '--instal'"

exit "$bad"

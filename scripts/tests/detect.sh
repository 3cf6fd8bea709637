#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# scripts/detect against toolkits made here: a folder with a script for nvcc, headers of a line and libraries of one
# function, in each layout that NVIDIA and distributions use. Shows that a part counts only when it links, and that
# a missing one says what it costs.

set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh"
cc=${CC:-cc}
target=$(uname -m)-linux
if [[ $target = aarch64-linux ]]; then target=sbsa-linux; fi

library() { # PATH FUNCTION...
	local function
	mkdir -p "${1%/*}"
	for function in "${@:2}"; do printf 'int %s(void); int %s(void) { return 0; }\n' "$function" "$function"; done |
		"$cc" -shared -fPIC -x c -o "$1" -
}

# A toolkit with nvcc, its headers in INCLUDE and its libraries in LIB, both below HOME.
toolkit() { # HOME INCLUDE LIB
	rm -rf "$1"
	mkdir -p "$1/bin" "$1/$2"
	cat >"$1/bin/nvcc" <<-'NVCC'
		#!/bin/sh
		case $1 in
		--version) echo 'Cuda compilation tools, release 12.2, V12.2.91' ;;
		--list-gpu-arch) printf 'compute_50\ncompute_80\ncompute_90\n' ;;
		esac
	NVCC
	chmod +x "$1/bin/nvcc"
	echo 'int cudaGetDeviceCount(int *);' >"$1/$2/cuda_runtime_api.h"
	echo 'int cublasLtGetVersion(void);' >"$1/$2/cublasLt.h"
	library "$1/$3/libcudart.so" cudaGetDeviceCount
	library "$1/$3/libcublasLt.so" cublasLtGetVersion
}

nccl() { # HOME LIB MAJOR MINOR PATCH
	mkdir -p "$1/include"
	printf '#define NCCL_MAJOR %s\n#define NCCL_MINOR %s\n#define NCCL_PATCH %s\nint ncclGetVersion(int *);\n' \
		"$3" "$4" "$5" >"$1/include/nccl.h"
	library "$1/$2/libnccl.so" ncclGetVersion
}

# No toolkit of this machine in PATH or in its variables; /usr/local/cuda comes last, so CUDA_HOME decides.
detect() { # VARIABLE=VALUE...
	env -u NVCC -u CUDA_HOME -u NCCL_HOME -u MPICC -u LIBRARY_PATH "$@" \
		"$top/scripts/detect" --mk "$work/mk" --table "$work/table"
}

has() { # NAME LINE: the make file has exactly this line
	verdict "$1" "$(grep -qxF -- "$2" "$work/mk" || echo "the make file lacks '$2'")"
}

says() { # NAME TEXT: the table has this text
	verdict "$1" "$(grep -qF -- "$2" "$work/table" || echo "the table lacks '$2'")"
}

for lib in lib64 lib "targets/$target/lib"; do
	toolkit "$work/cuda" include "$lib"
	nccl "$work/cuda" "$lib" 2 24 3
	detect CUDA_HOME="$work/cuda"
	has "cuda-in-$lib" "CUDA_LIBDIR := $work/cuda/$lib"
	has "nccl-in-$lib" 'HAVE_NCCL := 1'
done
has cuda-version 'CUDA_VERSION := 12.2.91'
has nccl-version 'NCCL_VERSION := 2.24.3'
has gencode-is-what-nvcc-knows "CUDA_GENCODE := -gencode arch=compute_80,code=sm_80 -gencode\
 arch=compute_90,code=sm_90 -gencode arch=compute_80,code=compute_80"

toolkit "$work/cuda" "targets/$target/include" "targets/$target/lib"
detect NVCC="$work/cuda/bin/nvcc"
has cuda-by-NVCC "CUDA_HOME := $work/cuda"

for lib in lib64 lib "targets/$target/lib"; do
	rm -rf "$work/nccl"
	nccl "$work/nccl" "$lib" 2 28 9
	detect CUDA_HOME="$work/cuda" NCCL_HOME="$work/nccl"
	has "nccl-by-NCCL_HOME-in-$lib" \
		"NCCL_LIBS := -L$work/nccl/$lib -Wl,-rpath,$work/nccl/$lib -lnccl"
done

rm -rf "$work/nccl"
nccl "$work/nccl" lib 2 19 3
detect CUDA_HOME="$work/cuda" NCCL_HOME="$work/nccl"
has nccl-too-old 'HAVE_NCCL := 0'
says nccl-too-old-says-so '2.24 or later is needed'

# The header alone is no NCCL, and an empty file with the library's name is none either.
rm -f "$work/nccl/lib/libnccl.so"
: >"$work/nccl/lib/libnccl.so"
detect CUDA_HOME="$work/cuda" NCCL_HOME="$work/nccl"
verdict nccl-that-does-not-link "$(grep -F "$work/nccl" <(grep '^NCCL_LIBS' "$work/mk") || true)"

detect NVCC=/no/such/nvcc
has nvcc-that-is-not-there 'HAVE_CUDA := 0'
says nvcc-that-is-not-there-costs 'NVCC=/no/such/nvcc is no program here. Costs: fabricbench-cuda.so'

detect MPICC=/no/such/mpicc NVCC=/no/such/nvcc
has mpicc-that-is-not-there 'HAVE_MPI := 0'
says mpicc-that-is-not-there-costs 'MPICC=/no/such/mpicc is no program here. Costs: fabricbench-mpi.so'

# MPICH and its kin answer to -show alone; this one gives an MPI too old.
mkdir -p "$work/mpi/include"
printf '#define MPI_VERSION 2\n#define MPI_SUBVERSION 2\n#define MPICH_VERSION "1.4"\n%s\n' \
	'int MPI_Init(int *, char ***);' >"$work/mpi/include/mpi.h"
library "$work/mpi/lib/libmpi.so" MPI_Init
cat >"$work/mpi/mpicc" <<-MPICC
	#!/bin/sh
	[ "\$1" = -show ] || exit 1
	echo cc -I$work/mpi/include -L$work/mpi/lib -lmpi
MPICC
chmod +x "$work/mpi/mpicc"
detect MPICC="$work/mpi/mpicc" NVCC=/no/such/nvcc
has mpi-too-old 'HAVE_MPI := 0'
says mpi-too-old-says-so '3.1 or later is needed'
sed -i -e 's/MPI_VERSION 2/MPI_VERSION 4/' -e 's/"1.4"/"4.1.2"/' "$work/mpi/include/mpi.h"
detect MPICC="$work/mpi/mpicc" NVCC=/no/such/nvcc
has mpich 'MPI_FLAVOR := mpich'
has mpich-version 'MPI_VERSION := 4.1.2'
has mpich-flags "MPI_CFLAGS := -isystem$work/mpi/include"
has mpich-libs "MPI_LIBS := -L$work/mpi/lib -lmpi"

# A path with signs that make reads as its own must arrive in make unchanged.
mkdir -p "$work/a\$b"
cp -R "$work/cuda" "$work/a\$b/cuda"
detect CUDA_HOME="$work/a\$b/cuda"
printf 'include %s\nall:\n\t@printf "%%s" %s\n' "$work/mk" "'\$(CUDA_HOME)'" >"$work/Makefile"
got=$(make -s -f "$work/Makefile")
verdict make-signs-are-escaped "$([[ $got = "$work/a\$b/cuda" ]] || echo "make reads '$got'")"

detect CC=/no/such/cc NVCC=/no/such/nvcc PKG_CONFIG=/no/such/pkg-config
says no-compiler '/no/such/cc cannot build a program'
verdict missing-required-are-named "$(grep -q '^MISSING_REQUIRED := .*libhwloc-dev' "$work/mk" ||
	echo "no libhwloc-dev in $(grep MISSING_REQUIRED "$work/mk")")"

status=0
"$top/scripts/detect" --mk 2>/dev/null || status=$?
verdict usage "$([[ $status = 2 ]] || echo "status $status, not 2")"
exit "$bad"

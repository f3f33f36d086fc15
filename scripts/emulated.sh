#!/usr/bin/env bash
# Runs tests of the search kernel's arm64 code on an emulator: once on a processor with dot products
# of bytes, and once on one without. On arm64 it runs nothing, because "go test" runs that code there.
#
# Tests that passed are not run again until a file changes that the test binary is made of, or Go, the
# emulator or this script. What passed is noted in ~/.cache/facet/emulated, for all clones of a user.
# ALWAYS=1 runs them anyway.
#
# usage: scripts/emulated.sh TESTS TESTS_WITHOUT_DOT_PRODUCTS
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == -h || $# -ne 2 ]]; then
	sed -n '2,9s/^# \{0,1\}//p' "$0"
	exit 2
fi
if [[ $(uname -m) == @(arm64|aarch64) ]]; then
	echo "emulated: not needed on this processor"
	exit 0
fi
scripts/emulator.sh
go=${GO:-go}
qemu=$PWD/assets/tools/qemu-aarch64
export GOOS=linux GOARCH=arm64 CGO_ENABLED=0

sources=$("$go" list -deps -test -f '{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}' ./shard/kernel | sort -u)
key=$({
	printf '%s\n' "$@"
	"$go" version
	"$qemu" --version
	while read -r folder; do
		(cd "$folder" && find . -maxdepth 1 -type f -print0 | sort -z | xargs -0 sha256sum)
	done <<<"$sources"
	sha256sum go.mod go.sum scripts/emulated.sh
} | sha256sum | cut -c1-16)
passed=${XDG_CACHE_HOME:-$HOME/.cache}/facet/emulated/$key
if [[ -z ${ALWAYS:-} && -e $passed ]]; then
	echo "emulated: passed on $(<"$passed"), and shard/kernel and what it imports are the same ($key); ALWAYS=1 runs it again"
	exit 0
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$go" vet ./shard/kernel
"$go" test -c -vet=off -o "$dir/kernel.test" ./shard/kernel
cd shard/kernel
FACET_KERNEL="neon dot product" "$qemu" -cpu max "$dir/kernel.test" -test.timeout 20m -test.run "$1"
FACET_KERNEL=neon "$qemu" -cpu cortex-a72 "$dir/kernel.test" -test.timeout 20m -test.run "$2"
mkdir -p "${passed%/*}"
date '+%-d %B %Y, %H:%M' >"$passed"

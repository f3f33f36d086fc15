#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other.
set -euo pipefail

usage() {
	cat <<'USAGE'
usage: scripts/fuzz.sh [-h] [TIME] [PATTERN]

Runs each FuzzXxx whose name matches PATTERN (default: all) for TIME (default 20s).
A finding ends the run; its input lies in the package's testdata/fuzz: fix the fault
and keep the file, it is a test from then on.
USAGE
}

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
	usage
	exit 0
fi
cd "$(dirname "$0")/.."
time=${1:-20s}
pattern=${2:-.}
go=${GO:-go}

output=$(mktemp)
trap 'rm -f "$output"' EXIT

count=0
while IFS= read -r dir; do
	while IFS= read -r target; do
		count=$((count + 1))
		echo "fuzz: $dir $target for $time"
		# Inputs are not made smaller: that takes most of the time. Go before 1.27 may take the end of the
		# time for a failure (go.dev/issue/75804), which no failing input belongs to.
		"$go" test -tags hashicorpmetrics,stale -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1x "$dir" | tee "$output" ||
			{ grep -qx '    context deadline exceeded' "$output" && ! grep -qiE 'failing input|seed corpus' "$output"; } || exit 1
	done < <(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | sed 's/^func //' | grep -E "$pattern" || true)
done < <(grep -rlE '^func Fuzz' --include='*_test.go' cmd engine internal node raftfsm router shard scripts | xargs -n 1 dirname | sort -u | sed 's|^|./|')

if [[ $count == 0 ]]; then
	echo "fuzz: no target matches $pattern" >&2
	exit 1
fi
echo "fuzz: $count targets, no findings"

#!/usr/bin/env bash
# Runs the tests of packages again and again beside busy processes, and adds a row for each run to
# docs/benchmarks/steady.csv: commit, packages, busy processes, seconds, failed tests.
#
# usage: scripts/steady.sh [-n RUNS] [-b BUSY] [PACKAGE…]
#   -n RUNS  default 20
#   -b BUSY  busy processes beside the tests, default 8
# Without packages it runs those that are not wholly in virtual time.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=20 busy=8
while getopts n:b:h flag; do
	case $flag in
	n) runs=$OPTARG ;;
	b) busy=$OPTARG ;;
	*)
		sed -n '2,8s/^# \{0,1\}//p' "$0"
		exit 2
		;;
	esac
done
shift $((OPTIND - 1))
packages=("$@")
[[ $# -gt 0 ]] || packages=(./node ./node/httpapi ./cmd/facet ./raftfsm ./internal/e2e ./scripts/chaos)
rows=docs/benchmarks/steady.csv
commit=$(git describe --always --dirty)
output=$(mktemp)
beside=()
trap 'kill "${beside[@]}" 2>/dev/null; rm -f "$output"' EXIT
for ((i = 0; i < busy; i++)); do
	(while :; do :; done) &
	beside+=($!)
done
failed=0
for ((run = 1; run <= runs; run++)); do
	SECONDS=0
	go test -count=1 -vet=off -tags hashicorpmetrics,stale -timeout 30m "${packages[@]}" >"$output" 2>&1 || failed=1
	failures=$(grep -oE '^ *--- FAIL: [^ ]+|^panic: .*|^FAIL.*\[.* failed\]' "$output" | sed 's/^ *--- FAIL: //' | sort -u | paste -sd ';' || true)
	echo "$commit,${packages[*]},$busy,$SECONDS,$failures" | tee -a "$rows"
	[[ -z $failures ]] || tail -n 200 "$output"
done
exit "$failed"

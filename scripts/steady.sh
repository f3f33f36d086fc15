#!/usr/bin/env bash
# Runs tests again and again on a busy machine, and adds a row for each run to docs/benchmarks/steady.csv:
# commit, command, load of the machine, seconds, failed tests.
#
# usage: scripts/steady.sh [-n RUNS] [-j LANES] [-b BUSY] [COMMAND…]
#   -n RUNS   default 20
#   -j LANES  runs beside each other, which are each other's load, default 1
#   -b BUSY   busy processes beside them, default 8
# Without a command it runs the tests that are not in virtual time; "make test" is everything.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=20 lanes=1 busy=8
while getopts n:j:b:h flag; do
	case $flag in
	n) runs=$OPTARG ;;
	j) lanes=$OPTARG ;;
	b) busy=$OPTARG ;;
	*)
		sed -n '2,9s/^# \{0,1\}//p' "$0"
		exit 2
		;;
	esac
done
shift $((OPTIND - 1))
name=${*:-tests that need the OS}
if [[ $# == 0 ]]; then
	mapfile -t files < <(git ls-files '*_real_test.go' && ls internal/e2e/*_test.go scripts/chaos/*_test.go)
	mapfile -t packages < <(printf './%s\n' "${files[@]%/*}" | sort -u)
	tests=$(grep -ho '^func Test[A-Za-z0-9_]*' "${files[@]}" | sed 's/func //' | grep -v '^TestMain$' | paste -sd '|')
	set -- go test -count=1 -vet=off -tags hashicorpmetrics,stale -timeout 60m -run "^($tests)\$" "${packages[@]}"
fi
commit=$(git describe --always --dirty)
outputs=$(mktemp -d)
beside=()
trap 'kill "${beside[@]}" 2>/dev/null || true' EXIT

# lane N COMMAND… is each LANES-th run, from the Nth on.
lane() {
	local run=$1 failed=0 began status failures
	shift
	for (( ; run <= runs; run += lanes)); do
		began=$SECONDS status=0
		"$@" >"$outputs/$run" 2>&1 || status=$?
		failures=$(grep -ohE '(--- FAIL|=== FAIL): .*|^panic: .*|^FAIL.*\[.* failed\]' "$outputs/$run" | sed -E 's/.*FAIL: //; s/ \([0-9.]+s\)$//' | sort -u | paste -sd ';' || true)
		[[ $status == 0 ]] || failures=${failures:-ended with $status}
		echo "$commit,$name,$(cut -d ' ' -f 2 /proc/loadavg),$((SECONDS - began)),$failures" | tee -a docs/benchmarks/steady.csv
		[[ -z $failures ]] || { failed=1 && echo "output: $outputs/$run"; }
	done
	return "$failed"
}

for ((i = 0; i < busy; i++)); do
	(while :; do :; done) &
	beside+=($!)
done
lane_pids=() failed=0
for ((i = 1; i <= lanes; i++)); do
	lane "$i" "$@" &
	lane_pids+=($!)
done
for pid in "${lane_pids[@]}"; do
	wait "$pid" || failed=1
done
exit "$failed"

#!/usr/bin/env bash
# Times the search kernel beside FAISS, usearch and sgemm on one core: makes a Python
# environment with the peers once (assets/venv-bench), builds and runs.
#
# usage: scripts/bench-search/run.sh [flags of bench-search; -help lists them]
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ ${1:-} == -h ]]; then
	sed -n '2,5s/^# \{0,1\}//p' "$0"
	exit 2
fi
requirements=scripts/bench-search/requirements.txt
venv=assets/venv-bench
if ! cmp -s "$requirements" "$venv/.complete"; then
	rm -rf "$venv"
	python3 -m venv "$venv"
	"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: -r "$requirements"
	cp "$requirements" "$venv/.complete"
fi
program=$(mktemp)
trap 'rm -f "$program"' EXIT
go build -o "$program" ./scripts/bench-search
taskset -c 1 "$program" -python "$venv/bin/python" "$@"

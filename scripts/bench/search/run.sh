#!/usr/bin/env bash
# Times the search kernel beside FAISS, hnswlib, usearch and sgemm on one core: makes a
# Python environment with the peers once (assets/venv-bench; python3.11 and g++), builds
# and runs.
#
# usage: scripts/bench/search/run.sh [flags of bench-search; -help lists them]
set -euo pipefail
cd "$(dirname "$0")/../../.."

if [[ ${1:-} == -h ]]; then
	sed -n '2,6s/^# \{0,1\}//p' "$0"
	exit 2
fi
folder=scripts/bench/search
venv=assets/venv-bench
if ! cat "$folder"/requirements*.txt | cmp -s - "$venv/.complete"; then
	echo "bench-search: making $venv (once, about two minutes)"
	rm -rf "$venv"
	"$(command -v python3.11 || command -v python3)" -m venv "$venv"
	pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes)
	"${pip[@]}" --only-binary=:all: -r "$folder/requirements.txt"
	"${pip[@]}" --no-deps --no-build-isolation --no-binary=:all: -r "$folder/requirements-source.txt"
	cat "$folder"/requirements*.txt >"$venv/.complete"
fi
program=$(mktemp)
trap 'rm -f "$program"' EXIT
go build -o "$program" ./scripts/bench/search
core=$(($(nproc) - 1))
taskset -c "$core" "$program" -python "$venv/bin/python" "$@"

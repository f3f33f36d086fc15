#!/usr/bin/env bash
# Makes the Python environment with the search kernel's peers, FAISS, hnswlib, usearch and
# numpy, in assets/venv-bench (once; python3.11 and g++).
#
# usage: scripts/bench/search/venv.sh
set -euo pipefail
cd "$(dirname "$0")/../../.."

if (($# > 0)); then
	sed -n '2,5s/^# \{0,1\}//p' "$0"
	exit 2
fi
folder=scripts/bench/search
venv=assets/venv-bench
if cat "$folder"/requirements*.txt | cmp -s - "$venv/.complete"; then
	exit 0
fi
echo "bench: making $venv (once, about two minutes)"
rm -rf "$venv"
"$(command -v python3.11 || command -v python3)" -m venv "$venv"
pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes)
"${pip[@]}" --only-binary=:all: -r "$folder/requirements.txt"
"${pip[@]}" --no-deps --no-build-isolation --no-binary=:all: -r "$folder/requirements-source.txt"
cat "$folder"/requirements*.txt >"$venv/.complete"

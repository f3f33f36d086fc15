#!/usr/bin/env bash
# Makes the Python environment of the tests' outside signer (botocore) in
# assets/venv, from a requirements file with hashes.
#
# usage: scripts/venv.sh REQUIREMENTS
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == -h || $# -ne 1 ]]; then
	sed -n '2,5s/^# \{0,1\}//p' "$0"
	exit 2
fi
requirements=$1
stamp=assets/venv/.complete

if cmp -s "$requirements" "$stamp"; then
	exit 0
fi
command -v python3 >/dev/null || {
	echo "set-up: the tests need python3 with venv and pip (Debian: apt-get install python3-venv)" >&2
	exit 1
}
echo "set-up: a Python environment with botocore for the signature tests"
rm -rf assets/venv
python3 -m venv assets/venv || {
	echo "set-up: python3 can't make a virtual environment (Debian: apt-get install python3-venv)" >&2
	exit 1
}
assets/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: -r "$requirements"
cp "$requirements" "$stamp"

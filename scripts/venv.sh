#!/usr/bin/env bash
# Makes the Python environment of the tests in assets/venv: the outside signer
# (botocore), the other reader of pictures (Pillow), and the tests of the Python client and of facet-lab, from requirements files with hashes.
#
# usage: scripts/venv.sh REQUIREMENTS…
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == -h || $# -lt 1 ]]; then
	sed -n '2,5s/^# \{0,1\}//p' "$0"
	exit 2
fi
stamp=assets/venv/.complete

if cat "$@" | cmp -s - "$stamp"; then
	exit 0
fi
command -v python3 >/dev/null || {
	echo "set-up: the tests need python3 with venv and pip (Debian: apt-get install python3-venv)" >&2
	exit 1
}
echo "set-up: a Python environment for the tests of signatures, pictures, the Python client and facet-lab"
files=()
for requirements in "$@"; do files+=(-r "$requirements"); done
rm -rf assets/venv
python3 -m venv assets/venv || {
	echo "set-up: python3 can't make a virtual environment (Debian: apt-get install python3-venv)" >&2
	exit 1
}
assets/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: "${files[@]}"
cat "$@" >"$stamp"

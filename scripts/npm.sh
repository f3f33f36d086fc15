#!/usr/bin/env bash
# Installs the npm packages of a folder with a package-lock.json, which has their hashes. No
# package runs a program of its own.
#
# usage: scripts/npm.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == -h || $# -ne 1 ]]; then
	sed -n '2,5s/^# \{0,1\}//p' "$0"
	exit 2
fi
lock=$1/package-lock.json
stamp=$1/node_modules/.complete

if cmp -s "$lock" "$stamp"; then
	exit 0
fi
command -v npm >/dev/null || {
	echo "set-up: the console and the JavaScript client need npm and Node 20.11 or newer (Debian: apt-get install npm)" >&2
	exit 1
}
echo "set-up: npm packages for the tests in $1"
npm --prefix "$1" ci --ignore-scripts --no-audit --no-fund --silent
cp "$lock" "$stamp"

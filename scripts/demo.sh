#!/usr/bin/env bash
# The demo: a three-node cluster that matches real faces, told as a story.
set -euo pipefail

usage() {
	cat <<'USAGE'
usage: scripts/demo.sh [-h] [FLAGS OF facet demo]

Starts three nodes on this machine, enrols sample photos, searches, kills a node
and tells what happens. "make demo" fetches and builds first what this needs.
With a terminal the cluster stays until Ctrl-C; DEMO_EXIT=1 ends it at once.
USAGE
}

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
	usage
	exit 0
fi
cd "$(dirname "$0")/.."

if [[ ! -x bin/facet ]]; then
	echo 'demo: bin/facet is missing: run "make build", or "make demo", which does it all' >&2
	exit 1
fi
if [[ ! -e assets/packs/sface/manifest.json || ! -d assets/photos ]]; then
	echo 'demo: the models or the photos are missing: run "make setup", or "make demo", which does it all' >&2
	exit 1
fi
# curl is wanted only for the lines to try at the end: --aws-sigv4 and --json.
version=$(curl --version 2>/dev/null | awk 'NR == 1 {print $2}') || version=
if [[ -z $version ]]; then
	echo 'demo: curl is not installed: the story needs none, but its last lines do' >&2
elif [[ $(printf '%s\n7.82\n' "$version" | sort -V | head -n 1) != 7.82 ]]; then
	echo "demo: curl $version is older than 7.82, which the last lines of the story need" >&2
fi
exec bin/facet demo "$@"

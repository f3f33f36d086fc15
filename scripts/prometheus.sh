#!/usr/bin/env bash
# Brings Prometheus for the tests of dashboards and alerts to assets/tools/prometheus: the programs
# prometheus and promtool in the folder $PROMETHEUS or on the PATH of this machine, or else those of
# Debian's or Ubuntu's package, unpacked there without installing it. Nothing else on the machine
# changes. Debian keeps one version at a time, so only the oldest one is pinned.
#
# usage: scripts/prometheus.sh
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $# -gt 0 ]]; then
	sed -n '2,8s/^# \{0,1\}//p' "$0"
	exit 2
fi
folder=$PWD/assets/tools/prometheus
# Debian 12 has it.
least=2.42

fail() {
	echo "set-up: the tests of dashboards and alerts need Prometheus $least or newer: $1" >&2
	echo "        Install it (Debian and Ubuntu: apt-get install prometheus), or name the folder of its programs in PROMETHEUS, then try again." >&2
	exit 1
}

# sound reports whether a folder has both programs in a sufficient version.
sound() {
	local name version
	for name in prometheus promtool; do
		version=$("$1/$name" --version 2>&1 | sed -n 's/^prom[a-z]*, version \([0-9.]*\).*/\1/p') || return 1
		[[ -n $version && $(printf '%s\n' "$least" "$version" | sort -V | head -n 1) == "$least" ]] || return 1
	done
}

# take links or moves both programs of a folder into their place if they are sound.
take() {
	sound "$2" || return 1
	mkdir -p "$folder"
	"$1" "$2/prometheus" "$2/promtool" "$folder"
}

# unpack brings the package and takes the programs out of it.
unpack() {
	scripts/debian.sh "$own" prometheus && dpkg-deb --extract "$own"/*.deb "$own" && take mv "$own/usr/bin"
}

link() { ln -sf "$@"; }

if [[ -n ${PROMETHEUS:-} && ! $PROMETHEUS -ef $folder ]]; then
	take link "$(realpath "$PROMETHEUS")" || fail "the programs in $PROMETHEUS don't run, or are older."
	exit 0
fi
if sound "$folder"; then
	exit 0
fi
if found=$(command -v prometheus) && take link "$(dirname "$found")"; then
	exit 0
fi
[[ $(uname -s) == Linux ]] || fail "it isn't there, and is fetched on Debian and Ubuntu only."
echo "set-up: Prometheus for the tests of dashboards and alerts (once)"
own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT
unpack || fail "it could not be fetched."

#!/usr/bin/env bash
# Brings the browser of the console's tests to assets/tools/chromium/chrome: a program that starts
# the Chrome or Chromium of this machine ($CHROME, else one on the PATH), or else Debian's package
# with the libraries that the machine lacks, unpacked there without installing them. Nothing else
# on the machine changes. Debian keeps one version at a time, so only the oldest one is pinned.
#
# usage: scripts/chromium.sh
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $# -gt 0 ]]; then
	sed -n '2,7s/^# \{0,1\}//p' "$0"
	exit 2
fi
folder=$PWD/assets/tools/chromium
# Before 130 it lacks some of what the pages use.
least=130

fail() {
	echo "set-up: the console's tests need Chrome or Chromium, version $least or newer: $1" >&2
	echo "        Install one (Debian: apt-get install chromium), or name its program in CHROME, then try again." >&2
	exit 1
}

# sound reports whether a program is a browser of a sufficient version.
sound() {
	local version
	version=$("$1" --version 2>/dev/null | sed -n 's/^\(Google Chrome\|Chromium\)[^0-9]* \([0-9]*\)\..*/\2/p')
	[[ -n $version && $version -ge $least ]]
}

# start writes the program that starts a browser. What follows the browser is a line before it.
start() {
	mkdir -p "$folder"
	printf '#!/bin/sh\n%s\nexec "%s" "$@"\n' "${2:-}" "$1" >"$folder/chrome.new"
	chmod 755 "$folder/chrome.new"
	mv "$folder/chrome.new" "$folder/chrome"
	sound "$folder/chrome"
}

# unpack downloads the browser and what it needs here, which apt checks against the distribution's
# signed lists, with further options of apt, and unpacks all of it.
unpack() {
	local names libraries
	names=$(apt-get "$@" -qq --no-install-recommends --print-uris install chromium 2>>"$log" | sed -n "s/^'[^']*' \([^_]*\)_.*/\1/p")
	[[ -n $names ]] || return 1
	rm -rf "$folder/packages" "$folder/unpacked"
	mkdir -p "$folder/packages" "$folder/unpacked"
	# shellcheck disable=SC2086 # one name a word
	(cd "$folder/packages" && apt-get "$@" -qq download $names) >>"$log" 2>&1 || return 1
	for package in "$folder"/packages/*.deb; do
		dpkg-deb --extract "$package" "$folder/unpacked" 2>>"$log" || return 1
	done
	rm -rf "$folder/packages"
	libraries=$(cd "$folder" && find unpacked -name '*.so*' -not -path '*/lib/chromium/*' -printf '$here/%h\n' | sort -u | paste -sd:)
	# shellcheck disable=SC2016 # the program finds its own folder, which may be moved
	start '$here/unpacked/usr/lib/chromium/chromium' 'here=$(cd "$(dirname "$0")" && pwd); export LD_LIBRARY_PATH="'"$libraries"'"'
}

if [[ -x $folder/chrome ]] && sound "$folder/chrome"; then
	exit 0
fi
for name in "${CHROME:-}" google-chrome google-chrome-stable chromium chromium-browser "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
	if [[ -n $name ]] && found=$(command -v "$name") && sound "$found" && start "$found"; then
		exit 0
	fi
done
[[ $(uname -s) == Linux ]] || fail "it isn't there, and is fetched on Debian only."
for client in apt-get dpkg-deb; do
	command -v "$client" >/dev/null || fail "it isn't there, and neither is $client to fetch it."
done

echo "set-up: Chromium for the console's tests (once)"
own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT
log=$own/log
# The machine's own lists first; they may be missing or old, and then apt makes new ones in a folder
# of ours, which takes no rights. What is installed is read from the machine's status either way.
unpack && exit 0
mkdir -p "$own"/state/lists/partial "$own"/cache/archives/partial
lists=(-o "Dir::State=$own/state" -o Dir::State::status=/var/lib/dpkg/status -o "Dir::Cache=$own/cache" -o APT::Sandbox::User= -o Debug::NoLocking=1)
apt-get "${lists[@]}" -qq update >>"$log" 2>&1 || true
unpack "${lists[@]}" && exit 0
cat "$log" >&2
fail "apt-get could not fetch it."

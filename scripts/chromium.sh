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

# unpack brings the browser and what it needs here, and unpacks all of it.
unpack() {
	local libraries package
	rm -rf "$folder/packages" "$folder/unpacked"
	mkdir -p "$folder/unpacked"
	scripts/debian.sh -d "$folder/packages" chromium || return 1
	for package in "$folder"/packages/*.deb; do
		dpkg-deb --extract "$package" "$folder/unpacked" || return 1
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
echo "set-up: Chromium for the console's tests (once)"
unpack || fail "it could not be fetched."

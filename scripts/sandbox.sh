#!/usr/bin/env bash
# Brings the programs that the tests of packages need and this machine lacks, bubblewrap and rpm, to
# assets/tools/sandbox, from Debian's packages. Nothing is installed.
#
# usage: scripts/sandbox.sh
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $# -gt 0 ]]; then
	sed -n '2,5s/^# \{0,1\}//p' "$0"
	exit 2
fi
folder=assets/tools/sandbox
missing=()
for program in bwrap:bubblewrap rpm:rpm; do
	command -v "${program%:*}" >/dev/null || [[ -x $folder/usr/bin/${program%:*} ]] || missing+=("${program#*:}")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0
echo "set-up: ${missing[*]} for the tests of packages (once)"
rm -rf "$folder" && mkdir -p "$folder"
scripts/debian.sh -d "$folder/packages" "${missing[@]}" || {
	echo "set-up: install ${missing[*]}, then try again." >&2
	exit 1
}
for package in "$folder"/packages/*.deb; do
	dpkg-deb --extract "$package" "$folder"
done
rm -rf "$folder/packages"

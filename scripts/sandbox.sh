#!/usr/bin/env bash
# Brings the programs that the tests of packages need and this machine lacks, bubblewrap, rpm, nginx
# and HAProxy, to assets/tools/sandbox, from Debian's packages. Nothing is installed.
#
# usage: scripts/sandbox.sh
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $# -gt 0 ]]; then
	sed -n '2,5s/^# \{0,1\}//p' "$0"
	exit 2
fi
folder=assets/tools/sandbox
wanted=() complete=1
for program in bwrap:bubblewrap rpm:rpm nginx:nginx haproxy:haproxy; do
	command -v "${program%:*}" >/dev/null && continue
	wanted+=("${program#*:}")
	compgen -G "$folder/usr/*bin/${program%:*}" >/dev/null || complete=
done
[[ -z $complete ]] || exit 0
echo "set-up: ${wanted[*]} for the tests of packages (once)"
rm -rf "$folder" && mkdir -p "$folder"
scripts/debian.sh -d "$folder/packages" "${wanted[@]}" || {
	echo "set-up: install ${wanted[*]}, then try again." >&2
	exit 1
}
for package in "$folder"/packages/*.deb; do
	dpkg-deb --extract "$package" "$folder"
done
rm -rf "$folder/packages"

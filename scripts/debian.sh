#!/usr/bin/env bash
# Downloads packages of Debian or Ubuntu into a folder, as .deb files, and installs nothing. apt
# checks them against the distribution's signed lists. The distribution keeps one version at a time,
# so none is pinned.
#
# usage: scripts/debian.sh [-a ARCH] [-d] FOLDER PACKAGE…
#   -a ARCH  packages for this processor (amd64, arm64)
#   -d       also the packages that they depend on and that this machine lacks
set -euo pipefail

arch='' depends=
while getopts a:dh flag; do
	case $flag in
	a) arch=$OPTARG ;;
	d) depends=1 ;;
	*)
		sed -n '2,8s/^# \{0,1\}//p' "$0"
		exit 2
		;;
	esac
done
shift $((OPTIND - 1))
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
for client in apt-get dpkg-deb; do
	command -v "$client" >/dev/null || {
		echo "debian.sh: $client is missing: this works on Debian and Ubuntu only" >&2
		exit 1
	}
done
own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT

# fetch downloads the packages with further options of apt.
fetch() {
	local names=$wanted
	if [[ $depends ]]; then
		names=$(apt-get "$@" -qq --no-install-recommends --print-uris install $wanted 2>>"$own/log" | sed -n "s/^'[^']*' \([^_]*\)_.*/\1/p")
		[[ -n $names ]] || return 1
	fi
	# shellcheck disable=SC2086 # one name a word
	(cd "$folder" && apt-get "$@" -qq download $names) >>"$own/log" 2>&1
}

wanted=$*
status=/var/lib/dpkg/status
options=(-o APT::Sandbox::User= -o Debug::NoLocking=1)
# The machine's own lists first; they may be missing or old, or of another processor. Then apt makes
# new ones in a folder of ours, which takes no rights.
if [[ -z $arch || $arch == "$(dpkg --print-architecture)" ]]; then
	fetch "${options[@]}" && exit 0
else
	status=$own/status
	touch "$status"
	options+=(-o "APT::Architecture=$arch" -o "APT::Architectures=$arch")
fi
mkdir -p "$own"/state/lists/partial "$own"/cache/archives/partial
options+=(-o "Dir::State=$own/state" -o "Dir::State::status=$status" -o "Dir::Cache=$own/cache")
apt-get "${options[@]}" -qq update >>"$own/log" 2>&1 || true
fetch "${options[@]}" && exit 0
cat "$own/log" >&2
echo "debian.sh: apt-get could not download $wanted" >&2
exit 1

#!/usr/bin/env bash
# Brings the emulator that runs the arm64 code on other processors, QEMU's for programs of Linux,
# to assets/tools/qemu-aarch64: from this machine if it is installed, else from Debian's or
# Ubuntu's package, unpacked there without installing it. Nothing else on the machine changes.
#
# usage: scripts/emulator.sh
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $# -gt 0 ]]; then
	sed -n '2,6s/^# \{0,1\}//p' "$0"
	exit 2
fi
tool=assets/tools/qemu-aarch64
# Before 7 it lacks some of what "max" stands for.
least=7

fail() {
	echo "set-up: the arm64 tests need QEMU's emulator qemu-aarch64, version $least or newer: $1" >&2
	echo "        Install it (Debian and Ubuntu: apt-get install qemu-user-static; Fedora: dnf install qemu-user-static-aarch64), then try again." >&2
	exit 1
}

# sound tells whether a program is the emulator: a Linux program that names itself with a
# version, and knows the processors of the tests.
sound() {
	local version cpus
	[[ -f $1 && $(head -c 4 "$1" | tr -d '\0') == $'\x7fELF' ]] || return 1
	version=$("$1" --version 2>/dev/null | sed -n '1s/^qemu-aarch64 version \([0-9]*\)\..*/\1/p')
	[[ -n $version && $version -ge $least ]] || return 1
	cpus=$("$1" -cpu help 2>/dev/null) || true # it ends with 1
	grep -qw max <<<"$cpus" && grep -qw cortex-a72 <<<"$cpus"
}

# take puts a program in its place if it is sound.
take() {
	sound "$1" || return 1
	mkdir -p "${tool%/*}"
	cp "$1" "$tool.new"
	chmod 755 "$tool.new"
	mv "$tool.new" "$tool"
}

# unpack brings a package and takes the emulator out of it.
unpack() {
	local program
	scripts/debian.sh "$dir/$1" "$1" && dpkg-deb --extract "$dir/$1"/*.deb "$dir/$1" || return 1
	for program in "$dir/$1"/usr/bin/qemu-aarch64{-static,}; do
		take "$program" && return
	done
	return 1
}

if sound "$tool"; then
	exit 0
fi
for name in qemu-aarch64-static qemu-aarch64; do
	if found=$(command -v "$name") && take "$found"; then
		exit 0
	fi
done
[[ $(uname -s) == Linux ]] || fail "it runs on Linux only; here \"go test\" runs the code of this machine's processor."
echo "set-up: the emulator for the arm64 tests (once)"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for package in qemu-user-static qemu-user; do
	unpack "$package" && exit 0
done
fail "it could not be fetched."

#!/bin/sh
# $1 is "remove" (dpkg) or 0 (rpm) when nothing of the package stays.
set -e
case ${1:-} in
remove | 0) [ ! -d /run/systemd/system ] || systemctl disable --now facet ;;
esac

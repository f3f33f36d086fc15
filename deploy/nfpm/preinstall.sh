#!/bin/sh
# The user of the service, and its folder, which holds the node's settings, keys and data.
set -e
getent passwd facet >/dev/null ||
	useradd --system --user-group --home-dir /var/lib/facet --no-create-home --shell /usr/sbin/nologin facet
[ -d /var/lib/facet ] || install -d -m 0700 -o facet -g facet /var/lib/facet

#!/bin/sh
# The data stays, even when dpkg purges the package: it may be the last copy of the faces and of the
# key that opens them.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
case ${1:-} in
remove | purge | 0)
	if [ -d /var/lib/facet ]; then
		echo "facet: /var/lib/facet and the user facet stay. To remove them: rm -r /var/lib/facet; userdel facet"
	fi
	;;
esac

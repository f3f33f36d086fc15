#!/bin/sh
# Nothing is started: a machine first founds a cluster or joins one. Nothing is restarted either: an
# upgrade of all machines at once would stop the cluster.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
if [ -e /var/lib/facet/facet.yaml ]; then
	echo "facet: the node still runs the version before. Restart one node after the other:"
	echo "       systemctl restart facet, then wait for \"no warnings\" of facet status"
else
	echo "facet: make this machine a node, then start it:"
	echo "       install -d -m 0700 -o facet -g facet /var/lib/facet-authority"
	echo "       sudo -u facet facet cluster init --dir /var/lib/facet    # or: cluster join TOKEN --dir /var/lib/facet"
	echo "       systemctl enable --now facet"
fi

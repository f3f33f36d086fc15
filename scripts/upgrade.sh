#!/usr/bin/env bash
# A cluster of an earlier build is upgraded node by node to this one, under load.
set -euo pipefail

usage() {
	cat <<'USAGE'
usage: scripts/upgrade.sh [-h] [COMMIT]

Builds facet as it was at COMMIT (default: the first tag v…) from the local history,
runs three nodes of it, replaces them one by one by today's build while clients write,
takes one of them back and forward again, and checks that every acknowledged
registration is there once.
USAGE
}

case ${1:-} in
-h | --help)
	usage
	exit 0
	;;
esac

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
commit=${1:-$(git tag --list 'v*' --sort=v:refname | head -n 1)}
if [[ -z $commit ]]; then
	echo 'upgrade: there is no tag here: name a commit' >&2
	exit 2
fi
git cat-file -e "$commit^{commit}" || {
	echo "upgrade: $commit is not in the local history" >&2
	exit 2
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/source" "$dir/bin"
git archive "$commit" | tar -x -C "$dir/source"
ln -s "$top/assets" "$dir/assets" # the binary looks for its models beside itself
echo "upgrade: building $(git describe --always --tags "$commit")"
(cd "$dir/source" && go build -trimpath -tags hashicorpmetrics -o "$dir/bin/facet" ./cmd/facet)
FACET_OLD_BINARY=$dir/bin/facet go test -tags hashicorpmetrics,long -count=1 -v -run 'TestRollingUpgrade' ./internal/e2e

#!/usr/bin/env bash
# A three-node cluster of separate "facet serve" processes, run by hand.
set -euo pipefail

usage() {
	cat <<'USAGE'
usage: scripts/cluster.sh [-h] COMMAND

  start         make certificates and keys, start the nodes, wait until the cluster is whole
  stop          stop all nodes
  status        nodes, groups, leaders, lag, warnings
  kill N        end node N (1 to 3) at once, as a crash does
  restart N     start node N again; one that runs is stopped first
  tenant NAME   make a tenant with an access key

The cluster lives in $CLUSTER_DIR (default ./cluster-data) and listens on loopback,
ten ports a node from $CLUSTER_PORT (default 7510). Node N has its data in DIR/nN, its
settings in DIR/nN.yaml and its log in DIR/nN.log. To spread the nodes over machines,
copy DIR/certificates/nN, cluster.key and gossip.key to each, and change the addresses.
USAGE
}

top=$(cd "$(dirname "$0")/.." && pwd)
facet=${FACET:-$top/bin/facet}
dir=${CLUSTER_DIR:-cluster-data}
first_port=${CLUSTER_PORT:-7510}
nodes=(1 2 3)
patience=60 # seconds until a start or a stop has failed
started=()  # nodes that this call started
process=()  # their processes, by node

fail() {
	echo "cluster: $*" >&2
	exit 1
}

port() { echo $((first_port + 10 * ($1 - 1) + $2)); } # NODE OFFSET
public() { echo "127.0.0.1:$(port "$1" 0)"; }
peer() { echo "127.0.0.1:$(port "$1" 1)"; }
admin() { echo "127.0.0.1:$(port "$1" 2)"; }

# joined FUNCTION: its result for all nodes, with commas.
joined() {
	local list="" n
	for n in "${nodes[@]}"; do list+="${list:+,}$("$1" "$n")"; done
	echo "$list"
}

# ask COMMAND…: facet, at the admin ports of this cluster.
ask() { "$facet" "$@" --admin "$(joined admin)" --certificates "$dir/certificates/admin"; }

# pid NODE: its process, if it certainly is this cluster's; else nothing.
pid() {
	local id args
	id=$(cat "$dir/n$1/node.pid" 2>/dev/null) || return 0
	[[ $id =~ ^[0-9]+$ ]] || return 0
	args=$(ps -o args= -p "$id" 2>/dev/null) || return 0
	if [[ $args == *" serve --config $dir/n$1.yaml" ]]; then echo "$id"; fi
}

configure() {
	local n
	"$facet" certs init --dir "$dir/certificates" --cluster by-hand
	for n in "${nodes[@]}"; do
		"$facet" certs issue "n$n" --dir "$dir/certificates" --data "$dir/n$n" --host 127.0.0.1 --host localhost
		cat >"$dir/n$n.yaml" <<-YAML
			name: n$n
			dir: $dir/n$n
			peer-address: $(peer "$n")
			public-address: $(public "$n")
			admin-address: $(admin "$n")
			seeds: [$(joined peer)]
			bootstrap-expect: ${#nodes[@]}
			shards: 4
			replicas: 3
			certificates: $dir/certificates/n$n
			cluster-key: $dir/certificates/cluster.key
			gossip-key: $dir/certificates/gossip.key
		YAML
	done
}

start_node() {
	if [[ -n $(pid "$1") ]]; then
		echo "cluster: n$1 runs already"
		return
	fi
	nohup "$facet" serve --config "$dir/n$1.yaml" >>"$dir/n$1.log" 2>&1 </dev/null &
	started+=("$1")
	process[$1]=$!
	disown
}

# wait_until WHAT COMMAND…: until COMMAND succeeds; a node that ends meanwhile ends it.
wait_until() {
	local what=$1 end=$((SECONDS + patience)) n
	shift
	until "$@"; do
		for n in "${started[@]}"; do
			# A node writes its pid file first thing; before that its process is looked for.
			if ! kill -0 "${process[$n]}" 2>/dev/null; then
				tail -n 3 "$dir/n$n.log" >&2
				fail "n$n has ended: see $dir/n$n.log"
			fi
		done
		((SECONDS < end)) || fail "$what takes more than $patience s: see $dir/n*.log"
		sleep 0.2
	done
}

# whole: all nodes are up and nothing is to be warned of.
whole() {
	local text
	text=$(ask status 2>/dev/null) || return 1
	[[ $(grep -cE '^n[0-9]+ +up ' <<<"$text") == "${#nodes[@]}" ]] && ! grep -q '^! ' <<<"$text"
}

# up NODE: it answers, and has every entry that its leaders have.
up() { ask status 2>/dev/null | awk -v "n=n$1" '$1 == n && $2 == "up" && $6 == 0 {found = 1} END {exit !found}'; }

# end_node NODE SIGNAL: and wait until it is gone.
end_node() {
	local id end=$((SECONDS + patience))
	id=$(pid "$1")
	if [[ -z $id ]]; then
		echo "cluster: n$1 does not run"
		return
	fi
	kill -s "$2" "$id"
	while [[ -n $(pid "$1") ]]; do
		((SECONDS < end)) || fail "n$1 (process $id) has not ended after $patience s"
		sleep 0.1
	done
	echo "cluster: n$1 (process $id) has ended"
}

# number ARGUMENT: a node's number, or the end.
number() {
	[[ ${1:-} =~ ^[1-3]$ ]] || {
		usage >&2
		exit 2
	}
	echo "$1"
}

case ${1:-} in
-h | --help)
	usage
	exit 0
	;;
esac
[[ -x $facet ]] || fail "$facet is missing: run \"make build\""
[[ -e $top/assets/packs/default/manifest.json ]] || fail 'the models are missing: run "make setup"'
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

case ${1:-} in
start)
	configure
	for n in "${nodes[@]}"; do start_node "$n"; done
	wait_until 'the start' whole
	for n in "${nodes[@]}"; do echo "cluster: n$n is up at https://$(public "$n"), process $(pid "$n")"; done
	echo "cluster: certificate for clients: $dir/certificates/ca.pem"
	;;
stop)
	# All at once: one after the other, the last two would look for a majority.
	for n in "${nodes[@]}"; do end_node "$n" TERM & done
	wait
	;;
status) ask status ;;
kill)
	n=$(number "${2:-}")
	end_node "$n" KILL
	;;
restart)
	n=$(number "${2:-}")
	if [[ -n $(pid "$n") ]]; then end_node "$n" TERM; fi
	[[ -e $dir/n$n.yaml ]] || fail "there is no node n$n in $dir: start the cluster first"
	start_node "$n"
	wait_until 'the restart' up "$n"
	echo "cluster: n$n is up again, process $(pid "$n")"
	;;
tenant)
	[[ -n ${2:-} ]] || {
		usage >&2
		exit 2
	}
	ask tenant create "$2"
	;;
*)
	usage >&2
	exit 2
	;;
esac

#!/usr/bin/env bash
# A cluster of separate "facet serve" processes on this machine, to be tried and broken.
set -euo pipefail

usage() {
	cat <<'USAGE'
usage: scripts/cluster.sh [-h] COMMAND

  start [N]      found a cluster of N nodes (default 3), or start the one that is there;
                 with a larger N than it has, more nodes join it
  stop           stop all nodes
  status         nodes, groups, leaders, lag, warnings
  tenant NAME    make a tenant with an access key
  facet ARGS…    any other command of facet, about this cluster

  kill K         end node K at once, as a crash does
  pause K        have node K hang, as an overloaded machine does; resume K ends it
  restart K      start node K again; one that runs is stopped first
  partition K…   cut these nodes off from the others, between nodes only; heal ends it
                 (as root, with iptables)
  wreck K        end node K at once and destroy its data, as the loss of a disk does
  replace K      take node K out of the cluster and have a new one join in its place

The cluster lives in $CLUSTER_DIR (default ./cluster-data) and listens on loopback, ten
ports a node from $CLUSTER_PORT (default 7510). Node K has everything in DIR/nK and its log
in DIR/nK.log. It is made by "facet cluster init", "invite" and "join", as on several machines.
USAGE
}

top=$(cd "$(dirname "$0")/.." && pwd)
facet=${FACET:-$top/bin/facet}
dir=${CLUSTER_DIR:-cluster-data}
first_port=${CLUSTER_PORT:-7510}
nodes_max=9
patience=300     # seconds until something has failed
first_group=61000 # as root, node K runs as this group + K: iptables tells nodes apart by it
invitation=""   # process of an open invitation

fail() {
	echo "cluster: $*" >&2
	exit 1
}

misused() {
	usage >&2
	exit 2
}

# The cluster is thrown away, and so is its authority.
export FACET_AUTHORITY_PASSPHRASE=${FACET_AUTHORITY_PASSPHRASE:-of a cluster by hand}

port() { echo $((first_port + 10 * ($1 - 1) + $2)); } # NODE OFFSET
folder() { echo "$dir/n$1"; }

# nodes: the numbers of those that were made.
nodes() {
	local n
	for ((n = 1; n <= nodes_max; n++)); do
		if [[ -e $(folder $n)/facet.yaml ]]; then echo $n; fi
	done
}

# ask COMMAND…: facet, about this cluster, at whichever node answers.
ask() { FACET_PROFILE=$dir/profile.yaml "$facet" "$@"; }

# profile: names the admin ports of all nodes.
profile() {
	local n admin
	admin=$(folder 1)/admin
	if [[ ! -e $admin ]]; then admin=$(folder 1)/authority/admin; fi # made by 0.3.1 or older
	{
		echo "certificates: $admin"
		echo "admin:"
		for n in $(nodes); do echo "  - 127.0.0.1:$(port "$n" 2)"; done
	} >"$dir/profile.yaml"
}

# pid NODE: its process, if it certainly is this cluster's; else nothing.
pid() {
	local id args
	id=$(cat "$(folder "$1")/data/node.pid" 2>/dev/null) || return 0
	[[ $id =~ ^[0-9]+$ ]] || return 0
	args=$(ps -o args= -p "$id" 2>/dev/null) || return 0
	if [[ $args == *" serve --config $(folder "$1")/facet.yaml" ]]; then echo "$id"; fi
}

# flags NODE: what init and join are told of a node.
flags() {
	local library
	library=$(compgen -G "$top/assets/lib/libonnxruntime.*" | head -n 1)
	printf '%s\n' --dir "$(folder "$1")" --name "n$1" --address 127.0.0.1 --port "$(port "$1" 0)" \
		--models "$top/assets/packs" --onnxruntime "$library"
}

can_partition() { [[ $EUID == 0 ]] && command -v iptables >/dev/null && command -v setpriv >/dev/null; }

# start_node NODE: and remember it.
start_node() {
	local as=()
	if [[ -n $(pid "$1") ]]; then
		echo "cluster: n$1 runs already"
		return
	fi
	if can_partition; then as=(setpriv --regid $((first_group + $1)) --clear-groups); fi
	nohup "${as[@]}" "$facet" serve --config "$(folder "$1")/facet.yaml" >>"$dir/n$1.log" 2>&1 </dev/null &
	process=$!
	disown
}

# wait_until NODE WHAT COMMAND…: until COMMAND succeeds; the end of the node ends it.
wait_until() {
	local n=$1 what=$2 end=$((SECONDS + patience))
	shift 2
	until "$@"; do
		if [[ -n ${process:-} ]] && ! kill -0 "$process" 2>/dev/null; then
			tail -n 3 "$dir/n$n.log" >&2
			fail "n$n has ended: see $dir/n$n.log"
		fi
		((SECONDS < end)) || fail "$what takes more than $patience s: see $dir/n*.log"
		sleep 0.2
	done
}

# whole N: so many nodes are up and nothing is to be warned of.
whole() {
	local text
	text=$(ask status 2>/dev/null) || return 1 # a warning is exit status 3
	[[ $(grep -cE '^n[0-9]+ +up ' <<<"$text") == "$1" ]]
}

# up NODE: it answers, and has every entry that its leaders have.
up() { { ask status 2>/dev/null || true; } | awk -v "n=n$1" '$1 == n && $2 == "up" && $8 == 0 {found = 1} END {exit !found}'; }

# found: the first node, which is a cluster by itself.
found() {
	local list
	mapfile -t list < <(flags 1)
	"$facet" cluster init --shards 4 --cluster by-hand "${list[@]}" >/dev/null
	profile
	start_node 1
	wait_until 1 'the founding' up 1
}

# join FROM TO: these nodes join, by one invitation.
join() {
	local n token list end=$((SECONDS + patience))
	: >"$dir/invitation"
	"$facet" cluster invite --dir "$(folder 1)" --nodes $(($2 - $1 + 1)) >"$dir/invitation" 2>&1 &
	invitation=$!
	trap 'if [[ -n $invitation ]]; then kill "$invitation" 2>/dev/null || true; fi' EXIT
	until token=$(grep -oE 'facet-join-[A-Za-z0-9_-]+' "$dir/invitation"); do
		kill -0 "$invitation" 2>/dev/null || fail "$(cat "$dir/invitation")"
		((SECONDS < end)) || fail "there is no invitation after $patience s"
		sleep 0.1
	done
	for ((n = $1; n <= $2; n++)); do
		mapfile -t list < <(flags "$n")
		FACET_JOIN_TOKEN=$token "$facet" cluster join "${list[@]}" >/dev/null
		profile
		start_node "$n"
		wait_until "$n" "the start of n$n" up "$n"
	done
	wait "$invitation"
	invitation=""
	rm -f "$dir/invitation"
}

# end_node NODE SIGNAL: and wait until it is gone.
end_node() {
	local id end=$((SECONDS + patience))
	id=$(pid "$1")
	if [[ -z $id ]]; then
		echo "cluster: n$1 does not run"
		return
	fi
	kill -s CONT "$id" # one that is paused would not end
	kill -s "$2" "$id"
	while [[ -n $(pid "$1") ]]; do
		((SECONDS < end)) || fail "n$1 (process $id) has not ended after $patience s"
		sleep 0.1
	done
	echo "cluster: n$1 (process $id) has ended"
}

# heal: nothing is cut off any more.
heal() {
	iptables -D OUTPUT -o lo -j "$chain" 2>/dev/null || true
	iptables -F "$chain" 2>/dev/null || true
	iptables -X "$chain" 2>/dev/null || true
}

# drop FROM TO: what node FROM sends to node TO's port for nodes is lost.
drop() {
	local protocol
	for protocol in tcp udp; do
		iptables -A "$chain" -m owner --gid-owner $((first_group + $1)) -p "$protocol" --dport "$(port "$2" 1)" -j DROP
	done
}

# partition NODE…: they see each other, the others see each other, nobody else anybody.
partition() {
	local n cut=" $* "
	heal
	iptables -N "$chain"
	for n in $(nodes); do
		[[ $cut == *" $n "* ]] && continue
		for k in "$@"; do
			drop "$k" "$n"
			drop "$n" "$k"
		done
	done
	iptables -I OUTPUT -o lo -j "$chain"
}

# number ARGUMENT: the number of a node that was made, or the end.
number() {
	[[ ${1:-} =~ ^[1-9]$ ]] || misused
	[[ -e $(folder "$1")/facet.yaml ]] || fail "there is no node n$1 in $dir: start the cluster first"
	echo "$1"
}

# running NODE: its process, or the end.
running() {
	local id
	id=$(pid "$1")
	[[ -n $id ]] || fail "n$1 does not run"
	echo "$id"
}

case ${1:-} in
-h | --help)
	usage
	exit 0
	;;
start | stop | status | tenant | facet | kill | pause | resume | restart | partition | heal | wreck | replace) ;;
*) misused ;;
esac
[[ -x $facet ]] || fail "$facet is missing: run \"make build\""
[[ -e $top/assets/packs/sface/manifest.json ]] || fail 'the models are missing: run "make setup"'
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
chain=FACET-$first_port # of iptables

case $1 in
start)
	have=$(nodes | wc -l)
	wanted=${2:-$((have > 0 ? have : 3))}
	[[ $wanted =~ ^[1-9]$ ]] || fail "a cluster has 1 to $nodes_max nodes"
	((wanted >= have)) || fail "the cluster has $have nodes: facet node remove makes it smaller"
	if ((have == 0)); then
		found
		have=1
	else
		for n in $(nodes); do start_node "$n"; done
		unset process
		wait_until 1 'the start' whole "$have"
	fi
	if ((wanted > have)); then join $((have + 1)) "$wanted"; fi
	wait_until "$wanted" 'the start' whole "$wanted"
	for n in $(nodes); do echo "cluster: n$n is up at https://127.0.0.1:$(port "$n" 0), process $(pid "$n")"; done
	echo "cluster: certificate for clients: $(folder 1)/certificates/ca.pem; for commands: export FACET_PROFILE=$dir/profile.yaml"
	;;
stop)
	if can_partition; then heal; fi
	# All at once: one after the other, the last two would look for a majority.
	for n in $(nodes); do end_node "$n" TERM & done
	wait
	;;
status) ask status ;;
tenant)
	[[ -n ${2:-} ]] || misused
	ask tenant create "$2"
	;;
facet)
	shift
	ask "$@"
	;;
kill)
	n=$(number "${2:-}")
	end_node "$n" KILL
	;;
pause)
	n=$(number "${2:-}")
	id=$(running "$n")
	kill -s STOP "$id"
	echo "cluster: n$n hangs"
	;;
resume)
	n=$(number "${2:-}")
	id=$(running "$n")
	kill -s CONT "$id"
	wait_until "$n" 'the return' up "$n"
	echo "cluster: n$n goes on"
	;;
restart)
	n=$(number "${2:-}")
	if [[ -n $(pid "$n") ]]; then end_node "$n" TERM; fi
	start_node "$n"
	wait_until "$n" 'the restart' up "$n"
	echo "cluster: n$n is up again, process $(pid "$n")"
	;;
partition)
	shift
	(($# > 0)) || misused
	can_partition || fail 'cutting nodes off needs root, iptables and setpriv'
	for n in "$@"; do number "$n" >/dev/null; done
	partition "$@"
	echo "cluster: cut off: n${*// / n}; \"heal\" ends it"
	;;
heal)
	can_partition || fail 'it needs root and iptables'
	heal
	echo 'cluster: all nodes see each other again'
	;;
wreck)
	n=$(number "${2:-}")
	((n > 1)) || fail 'n1 has the authority: wreck another one'
	end_node "$n" KILL
	rm -rf "$(folder "$n")/data"
	echo "cluster: n$n has lost its data; \"replace $n\" puts a new node in its place"
	;;
replace)
	n=$(number "${2:-}")
	((n > 1)) || fail 'n1 has the authority: replace another one'
	if [[ -n $(pid "$n") ]]; then end_node "$n" TERM; fi
	ask node remove "n$n" --force
	rm -rf "$(folder "$n")"
	have=$(nodes | wc -l)
	join "$n" "$n"
	wait_until "$n" 'the recovery' whole $((have + 1))
	echo "cluster: n$n is a new node, process $(pid "$n")"
	;;
esac

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# up.sh COMMAND... - runs a command beside a cluster of six hosts: a1 a2 a3 at one site, b1 b2 b3 at another one.
#
# A host is a network namespace with an address, a name and the kernel's own TCP. A token bucket (tc tbf) gives it $HOST_RATE (1 Gbit/s)
# out and in, and all that goes from one site to the other takes one line of $LINE_RATE (100 Mbit/s) each way. Buckets count whole
# Ethernet frames, so of both rates 1448 / 1514 are left for what a program sends.
#
# All of it is in namespaces of its own, users and processes included: no packet leaves them, nothing outside is changed, and root is not
# needed where a user may make namespaces. The kernel ends everything in them when this script ends, be it by SIGKILL, and nothing is
# left. Exit status: that of the command; 77 with a line on stderr where the system does not let us have such a cluster.
#
# The line has room for 10 ms of frames ($LINE_QUEUE), 128 KB, as the port of a plain switch has: what waits there is latency that no
# model here knows, for answers too, which wait behind what goes the other way.
#
#     up.sh bash        a shell beside them, in which tests/cluster-of-hosts/on.sh a1 COMMAND... runs something on a host
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

cannot() {
	echo "no cluster of hosts here: $*" >&2
	exit 77
}

# Outside: makes the namespaces, and this script begins anew as process 1 in them. --kill-child: it dies with its parent.
if [ "${1:-}" != --inside ]; then
	for program in unshare nsenter hostname ip tc; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || cannot "$program is not installed (iproute2, util-linux)"
	done
	new=(unshare --net --mount --pid --fork --kill-child --mount-proc)
	[ "$(id -u)" = 0 ] || new+=(--user --map-root-user)
	why=$("${new[@]}" true 2>&1) || cannot "$why"
	PATH=$PATH:/usr/sbin:/sbin exec "${new[@]}" "$0" --inside "$@"
fi
shift

[ "$$" = 1 ] || cannot 'it is not in namespaces of its own'
why=$(mount -t tmpfs tmpfs /run 2>&1) || cannot "$why" # in our mount namespace alone, as all mounts here
export HOSTS=/run
names=(a1 a2 a3 b1 b2 b3)

shaped() { # shaped DEVICE RATE LATENCY: what is sent there; LATENCY is what may wait
	tc qdisc add dev "$1" root tbf rate "$2" burst 64kb latency "$3"
}

switches() { # one a site, with the line between them
	local site
	ip link set lo up
	for site in a b; do
		ip link add "switch-$site" type bridge
		ip link set "switch-$site" up
	done
	ip link add line-a type veth peer name line-b
	for site in a b; do
		ip link set "line-$site" master "switch-$site" up
		shaped "line-$site" "${LINE_RATE:-100mbit}" "${LINE_QUEUE:-10ms}"
	done
}

host() { # host NAME NUMBER: 10.77.0.NUMBER
	local up=$HOSTS/$1.up
	unshare --net --uts bash -euc 'hostname "$1"; : >"$2"; exec sleep infinity' - "$1" "$up" &
	echo "$!" >"$HOSTS/$1.pid"
	while [ ! -e "$up" ]; do
		kill -0 "$!"
		sleep 0.01
	done
	ip link add "port-$1" type veth peer name eth0 netns "$!"
	ip link set "port-$1" master "switch-${1:0:1}" up
	shaped "port-$1" "${HOST_RATE:-1gbit}" 20ms
	"$here/on.sh" "$1" bash -euc "ip addr add 10.77.0.$2/24 dev eth0; ip link set eth0 up; ip link set lo up
		ip route replace 10.77.0.0/24 dev eth0 src 10.77.0.$2 congctl ${HOST_TCP:-cubic}
		$(declare -f shaped); shaped eth0 ${HOST_RATE:-1gbit} 20ms"
}

exec 3>&2 2>"$HOSTS/why"
set -E
trap 'exec 2>&3; cannot "$(head -n 1 "$HOSTS/why")"' ERR
{
	echo 127.0.0.1 localhost
	for i in "${!names[@]}"; do
		echo "10.77.0.$((i + 1)) ${names[i]}"
	done
} >"$HOSTS/names"
mount --bind "$HOSTS/names" /etc/hosts
switches
for i in "${!names[@]}"; do
	host "${names[i]}" "$((i + 1))"
done
trap - ERR
exec 2>&3 3>&-
status=0
"$@" || status=$?
exit "$status"

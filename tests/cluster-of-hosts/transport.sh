#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# transport.sh - frames and tensors between two hosts whose line is not shaped: Open MPI's TCP, skep's TCP without TLS, and with it, in turns.
# Prints the least and the median of what each took one way; a quiet machine is needed.
#
#     tests/cluster-of-hosts/transport.sh [TURNS]        5 turns; needs a build with MPI and its tests
set -u
cd "$(dirname "$0")/../.." || exit 1
hosts=$PWD/tests/cluster-of-hosts
build=$(readlink -f "${BUILD:-build}")
if [ "${1:-}" != --inside ]; then
	exec "$hosts/up.sh" "$hosts/transport.sh" --inside "${1:-5}"
fi
. tests/cli/lib.sh
mpi_environment alone
export OMPI_MCA_plm_rsh_agent=$hosts/agent.sh PRTE_MCA_plm_ssh_agent=$hosts/agent.sh TMPDIR=$scratch
export OMPI_MCA_mpi_yield_when_idle=1 # two processes that poll, and whatever else there is, on these cores
for host in a1 a2; do # a1 and a2 are on one switch
	"$hosts/on.sh" "$host" tc qdisc del dev eth0 root
	tc qdisc del dev "port-$host" root
done
printf 'a1 slots=1\na2 slots=1\n' >slots
storm=$build/tests/storm
for ((turn = 0; turn < $2; turn++)); do
	# As skep run asks for it: tensors in fragments of 4 MiB, without `put`.
	"$hosts/on.sh" a1 timeout 120 mpirun --hostfile slots -n 2 --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 --mca btl_tcp_disable_family 6 \
		--mca btl_tcp_flags send --mca btl_tcp_max_send_size 4194304 \
		"$storm" --bench | sed -n 's/^ *\([0-9]*\) bytes: \([0-9.]*\) us.*/mpi \1 \2/p'
	for mode in --bare --tls; do
		"$hosts/on.sh" a1 timeout 120 "${storm}_tcp" $mode --bench --from "/proc/$(cat "$HOSTS/a2.pid")/ns/net" --to 10.77.0.1 |
			sed -n "s/^ *\([0-9]*\) bytes: \([0-9.]*\) us.*/${mode#--} \1 \2/p"
	done
done >seen
python3 - seen <<-'END'
	import statistics, sys
	took = {}
	for line in open(sys.argv[1]):
	    name, size, us = line.split()
	    took.setdefault(int(size), {}).setdefault(name, []).append(float(us))
	for size, by in sorted(took.items()):
	    for name, us in by.items():
	        rate = "" if size == 0 else f", {8 * size / statistics.median(us) / 1e3:.2f} Gbit/s"
	        print(f"{size:9} bytes  {name:4}  least {min(us):10.2f} us, median {statistics.median(us):10.2f} us{rate}")
END

# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# flood.sh - what strangers cost: steps a second of a run in turns of ten seconds, without and with thousands of connections that say
# nothing, halves of handshakes, random bytes and wrong tickets, from two hosts. The figure is printed; a quiet machine is needed.

steps_now() {
	"$hosts/on.sh" a2 "$skep" status a1:7337 --ticket "$ticket" --json | python3 -c '
import json, sys
s = json.load(sys.stdin)
print(s["steps"], s["time_s"])'
}

plague() { # until killed
	trap 'kill 0' TERM
	while :; do
		for what in half_open half_handshakes random_bytes wrong_ticket; do
			HOLD=1 timeout 20 "$hosts/on.sh" "$1" python3 "$hosts/strangers.py" a1 7337 "$what"
		done
	done >/dev/null 2>&1
}

serves flood --set train.until.steps=100000
join_all
awaits 'flood: the run begins' rounds 5
: >turns
for turn in 1 2 3 4 5; do
	for with in without with; do
		pids=()
		if [ "$with" = with ]; then
			for host in b2 b3; do
				setsid bash -c "$(declare -f plague); hosts=$hosts; plague $host" 9>&- &
				pids+=("$!")
			done
			sleep 1
		fi
		read -r steps begin < <(steps_now)
		sleep "${TURN:-10}"
		read -r later end < <(steps_now)
		echo "$with $steps $begin $later $end" >>turns
		for pid in "${pids[@]}"; do
			kill -TERM -- "-$pid" 2>/dev/null
			wait "$pid" 2>/dev/null
		done
	done
done
kill -TERM "$serve"
ends flood 143
gather
python3 - turns <<-'END'
	import statistics, sys
	rate = {"with": [], "without": []}
	for line in open(sys.argv[1]):
	    name, steps, begin, later, end = line.split()
	    rate[name].append((int(later) - int(steps)) / (float(end) - float(begin)))
	for name, rates in rate.items():
	    print(f"# flood: {name} strangers", *(f"{r:.2f}" for r in rates), "steps/s")
	medians = [statistics.median(rate[name]) for name in ("with", "without")]
	print(f"# flood: with / without {medians[0] / medians[1]:.3f}, by medians")
END
grep 'refused' flood.err | sed 's/^/# flood: /' | tail -n 2

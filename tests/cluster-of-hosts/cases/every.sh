# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# every.sh - each of the six hosts is lost in each way that there is: its processes are killed, its power is cut, it is heard by
# no other host any more, it hears no other one, it and its neighbour are cut off from each other for 30 s ($CUT), it is stopped. Behind each
# the run goes on, and the host comes back. The host of `serve` is not cut off: that is a lost directory (resume.sh). Five minutes.

others() { # others HOST: all but it
	local other
	for other in "${names[@]}"; do
		[ "$other" = "$1" ] || echo "$other"
	done
}

next_to() { # next_to HOST: another one, which is not that of serve
	case $1 in
	b3) echo a2 ;;
	*) echo b3 ;;
	esac
}

lose() { # lose WAY HOST
	local host=$2 other
	case $1 in
	killed) kills KILL "$host" ;;
	power) cut_power "$host" ;;
	mute) for other in $(others "$host"); do deafen "$other" "$host"; done ;;
	deaf) for other in $(others "$host"); do deafen "$host" "$other"; done ;;
	apart) partition "$host" "$(next_to "$host")" ;;
	stopped) "$hosts/on.sh" "$host" kill -STOP "$(children "${joiner[$host]}" | head -n 1)" ;;
	esac
}

give_back() { # give_back WAY HOST
	local host=$2 other
	case $1 in
	killed) joins "$host" "$host" --stay ;;
	power) restore_power "$host" ;;
	mute) for other in $(others "$host"); do hear_again "$other" "$host"; done ;;
	deaf) for other in $(others "$host"); do hear_again "$host" "$other"; done ;;
	apart) heal "$host" "$(next_to "$host")" ;;
	stopped) kill -CONT "$(children "${joiner[$host]}" | head -n 1)" 2>/dev/null ;;
	esac
}

all_back() { # has each place a machine?
	"$hosts/on.sh" a1 "$skep" status a1:7337 --ticket "$ticket" 2>/dev/null | grep -q '^6 of 6 workers are here'
}

serves every --set train.until.steps=4000
join_all --stay
awaits 'every: the run begins' rounds 3
for way in killed power mute deaf apart stopped; do
	for host in "${names[@]}"; do
		[ "$host" = a1 ] && [ "$way" != killed ] && [ "$way" != stopped ] && continue
		lose "$way" "$host"
		if [ "$way" = apart ]; then
			sleep "${CUT:-30}" &
			held=$!
		fi
		goes_on "every: $host $way" 6 || break 2
		[ "$way" != apart ] || wait "$held"
		[ "$way" != stopped ] || sleep 4
		give_back "$way" "$host"
		awaits "every: $host is back after $way" all_back || awaits "every: $host is back after $way" all_back || break 2
		pass "every: $host $way"
	done
done
kill -TERM "$serve"
ends every 143
for name in "${!joiner[@]}"; do # which would knock on
	kills TERM "$name"
done
gather
check 'every: ledger kept' [ "$(sqlite every.db "SELECT count(*) FROM v_ledger WHERE verdict <> 'kept'")" = 0 ]
check 'every: the loss has fallen' python3 - every.db <<-'END'
	import sqlite3, sys
	loss = [l for l, in sqlite3.connect(sys.argv[1]).execute("SELECT loss FROM rounds ORDER BY round")]
	assert sum(loss[-5:]) < 0.7 * sum(loss[:5]), (loss[:5], loss[-5:])
END
run_skep replay 1 --db every.db --json
check 'every: replay agrees' grep -q '"verdict":"agrees"' "$out"
# What a loss costs: the longest pause between two rounds, beside a usual round and the silence of 2 s.
python3 - every.db <<-'END'
	import sqlite3, statistics, sys
	at = [t for t, in sqlite3.connect(sys.argv[1]).execute("SELECT closed_s FROM rounds ORDER BY round")]
	gaps = [b - a for a, b in zip(at, at[1:])]
	print(f"# every: {len(at)} rounds of {statistics.median(gaps):.2f} s; the longest {max(gaps):.2f} s, "
	      f"{sum(g > 3 for g in gaps)} of more than 3 s")
END

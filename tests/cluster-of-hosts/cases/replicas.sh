# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# replicas.sh - case of join.sh: a1, a2 and a3 are replicas, and b1, b2 and b3 train. The one that leads loses its power, hears no other
# one, is not heard, is cut off from each of the others; then all three are cut off from each other. What is cut is between replicas
# alone, but for the power: the workers hear all of them, and could be served by two.

run=replicas
list=a1:7337,a2:7337,a3:7337
sed -e 's/^seed: 5$/seed: 5\ncheckpoint: {every: 1, to: kept}/' -e 's/stages: 2/stages: 1/' -e 's/steps: 40/steps: 400/' job.yaml >replicated.yaml
joiner=()
declare -A replica=()

replicate() { # replicate HOST NUMBER
	(
		mkdir -p "on-$1" && cp -R replicated.yaml six.yaml gpus "on-$1" && cd "on-$1" || exit
		exec "$hosts/on.sh" "$1" "$skep" serve replicated.yaml --pace --silence '4 s' --at-least 2 --json --replicas "$list" \
			--replica "$2" </dev/null >>out 2>>err 9>&-
	) &
	replica[$1]=$!
}

key() {
	cp -p on-a1/skep.db-*.serve on-a2 2>/dev/null && cp -p on-a1/skep.db-*.serve on-a3
}

serving() { # the hosts on which something takes connections in for those who join
	local host
	for host in a1 a2 a3; do
		[ -z "$("$hosts/on.sh" "$host" ss -tlnH 'sport = :7337')" ] || echo "$host"
	done
}

leads() { # leads [BUT]: one host serves, another one than BUT; it is in $lead
	lead=$(serving)
	[ -n "$lead" ] && [ "$(wc -w <<<"$lead")" = 1 ] && [ "$lead" != "${1:-}" ]
}

all_rounds() {
	local host sum=0
	for host in a1 a2 a3; do
		sum=$((sum + $(sqlite "on-$host/skep.db" 'SELECT count(*) FROM rounds' || echo 0)))
	done
	echo "$sum"
}

more_rounds() { # more_rounds THAN
	[ "$(all_rounds)" -gt "$1" ]
}

others() {
	local host
	for host in a1 a2 a3; do
		[ "$host" = "$1" ] || echo "$host"
	done
}

taken_over() { # taken_over WHAT FROM: another one leads, none beside it, and the run goes on
	local had
	if awaits "$run: $1: another one leads" leads "$2"; then pass "$run: $1: $lead takes over from $2"; fi
	had=$(all_rounds)
	if awaits "$run: $1: the run goes on" more_rounds $((had + 4)); then pass "$run: $1: and goes on"; fi
}

mkdir -p on-a2 on-a3
replicate a1 1
: >"$run.err"
awaits "$run: the key is made" key
replicate a2 2
replicate a3 3
awaits "$run: one leads" leads
ticket=$(grep -ho 'skep1-[0-9a-z]*' on-*/err | head -n 1)
for host in b1 b2 b3; do
	"$hosts/on.sh" "$host" "$skep" join "$list" --stay --ticket "$ticket" --cache "$scratch/cache-$host" \
		>"$run-$host.out" 2>"$run-$host.err" </dev/null 9>&- &
	joiner[$host]=$!
done
awaits "$run: the run begins" more_rounds 3

old=$lead
cut_power "$old"
taken_over 'power cut' "$old"
restore_power "$old"

old=$lead
for host in $(others "$old"); do deafen "$old" "$host"; done
taken_over 'it hears no other replica' "$old"
for host in $(others "$old"); do hear_again "$old" "$host"; done

old=$lead
for host in $(others "$old"); do deafen "$host" "$old"; done
taken_over 'no other replica hears it' "$old"
for host in $(others "$old"); do hear_again "$host" "$old"; done

old=$lead
for host in $(others "$old"); do partition "$old" "$host"; done
taken_over 'cut off from both' "$old"
for host in $(others "$old"); do heal "$old" "$host"; done

partition a1 a2
partition a1 a3
partition a2 a3
none() {
	[ -z "$(serving)" ]
}
if awaits "$run: none serves" none; then pass "$run: each cut off from each: none serves"; fi
heal a1 a2
heal a1 a3
heal a2 a3
taken_over 'healed' none
for host in a1 a2 a3; do
	kill -TERM "${replica[$host]}" # each alone: what has been shown is shown
	code=0
	wait "${replica[$host]}" || code=$?
	[ "$code" = 143 ] && pass "$run: $host ends with SIGTERM" || fail "$run: $host ends with SIGTERM" "status $code"
done
kills TERM b1
kills TERM b2
kills TERM b3
gather

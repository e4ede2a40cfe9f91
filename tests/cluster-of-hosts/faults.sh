# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# faults.sh - sourced by join.sh: what may happen to a host of up.sh, and how it ends.

address() { # address HOST
	awk -v host="$1" '$2 == host {print $1}' "$HOSTS/names"
}

cut_power() { # cut_power HOST: nothing is ever heard of it again; its line is down, and nobody is told
	ip link set "port-$1" down
}

restore_power() {
	ip link set "port-$1" up
}

# One direction alone: what FROM sends to TO goes to a card that nobody has.
deafen() { # deafen TO FROM
	"$hosts/on.sh" "$2" ip neigh replace "$(address "$1")" lladdr 02:00:00:00:00:99 dev eth0 nud permanent
}

hear_again() { # hear_again TO FROM
	"$hosts/on.sh" "$2" ip neigh del "$(address "$1")" dev eth0
}

partition() { # partition HOST HOST
	deafen "$1" "$2"
	deafen "$2" "$1"
}

heal() { # heal HOST HOST
	hear_again "$1" "$2"
	hear_again "$2" "$1"
}

# As behind NAT: connections to this port are not answered; those that it makes are.
hide_port() { # hide_port HOST PORT
	"$hosts/on.sh" "$1" ip rule add sport "$2" ipproto tcp blackhole
}

show_port() {
	"$hosts/on.sh" "$1" ip rule del sport "$2" ipproto tcp blackhole
}

sqlite() { # sqlite FILE SQL: one value
	python3 -S -c '
import sqlite3, sys
print(sqlite3.connect("file:" + sys.argv[1] + "?mode=ro", uri=True, timeout=10).execute(sys.argv[2]).fetchone()[0])' "$@" 2>/dev/null
}

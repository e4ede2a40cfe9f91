#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# database.sh - databases that cannot be used, and what a run that is killed leaves behind.
set -u
. tests/cli/lib.sh
needs python3

accepts 'a good one to begin with' sim "${quick[@]}" --db good.db

query() { # query FILE SQL: the first value; makes no file
	python3 -c 'import sqlite3, sys
print(sqlite3.connect("file:" + sys.argv[1] + "?mode=rw", uri=True).execute(sys.argv[2]).fetchone()[0])' "$1" "$2"
}

rounds_come() { # rounds_come FILE COUNT PROCESS: so many rounds are in the file; sets `rounds`. Fails if the process ends first
	for _ in {1..300}; do
		rounds=$(query "$1" 'SELECT count(*) FROM rounds' 2>/dev/null || echo 0)
		[ "$rounds" -lt "$2" ] || return 0
		kill -0 "$3" 2>/dev/null || return 1
		sleep 0.1
	done
	return 1
}

equals() { # equals EXPECTED SEEN
	[ "$1" = "$2" ] || { echo "expected $1, saw $2"; return 1; }
}

# ---- not a database, not ours ---------------------------------------------------------------------------------------

printf 'a shopping list, long enough to be no header of anything: %s\n' {1..40} >list.db
refuses 'a text file' 'list.db.*not a database' sim "${quick[@]}" --db list.db
head -c 8192 /dev/urandom >noise.db
refuses 'noise' 'noise.db.*not a database' sim "${quick[@]}" --db noise.db
mkdir folder.db
refuses 'a folder' '^skep: folder.db: a folder, not a database' sim "${quick[@]}" --db folder.db
refuses 'in a folder that is not there' '^skep: none/a.db: cannot be created: .*make its folder first' sim "${quick[@]}" --db none/a.db
refuses 'a device' '^skep: /dev/full: not a regular file' sim "${quick[@]}" --db /dev/full
refuses 'no name' '^skep: the database needs a file name: --db FILE' sim "${quick[@]}" --db ''
python3 -c 'import sqlite3; d = sqlite3.connect("foreign.db"); d.execute("CREATE TABLE t (x)"); d.commit()'
refuses 'a database of another program' 'foreign.db.*another program' sim "${quick[@]}" --db foreign.db
cp good.db newer.db
python3 -c 'import sqlite3; d = sqlite3.connect("newer.db"); d.execute("PRAGMA user_version = 999"); d.commit(); d.close()'
refuses 'a database of a newer skep' 'newer.db.*newer' sim "${quick[@]}" --db newer.db
head -c 5000 good.db >torn.db
refuses 'a torn database' '^skep: torn.db: the database is damaged' sim "${quick[@]}" --db torn.db
# A page of the table of rounds, whose number the file itself tells: SQLite can write on without ever meeting it.
cp good.db worn.db
python3 -c 'import sqlite3
d = sqlite3.connect("worn.db")
page, = d.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", ("rounds",)).fetchone()
size, = d.execute("PRAGMA page_size").fetchone()
d.close()
with open("worn.db", "r+b") as f:
	f.seek((page - 1) * size)
	f.write(bytes(16))'
cp worn.db before.db
refuses 'a database with a damaged page' '^skep: worn.db: the database is damaged .*nothing was written' sim "${quick[@]}" --db worn.db
check 'a database with a damaged page is not written to' cmp worn.db before.db
# What can be read of it is read, with a warning.
accepts 'runs of a damaged database are listed' runs list --db worn.db
check 'with a warning' grep -qE '^skep: warning: worn.db: the database is damaged \(.*\): rows may be missing or wrong$' "$err"
accepts 'those of a sound one' runs list --db good.db
check 'without' test ! -s "$err"
for command in compare 'plot accuracy -o a.png'; do
	# shellcheck disable=SC2086
	refuses "$command without a database" '^skep: nothing.db: no such database' $command --db nothing.db
	# shellcheck disable=SC2086
	refuses "$command of a text file" '^skep: list.db: not a database' $command --db list.db
done

# ---- read-only ------------------------------------------------------------------------------------------------------

if bound_by_permissions sh -c ': >probe && chmod 444 probe && ! ( : >probe ) 2>/dev/null'; then
	plain=$skep
	wrapper=$scratch/as-user
	declare -f bound_by_permissions >"$wrapper.sh"
	printf '#!/bin/bash\n. "%s.sh"\nbound_by_permissions "%s" "$@"\n' "$wrapper" "$plain" >"$wrapper"
	chmod +x "$wrapper"
	skep=$wrapper
	cp good.db frozen.db
	chmod 444 frozen.db
	refuses 'a read-only file' 'frozen.db.*(read-only|denied|writable)' sim "${quick[@]}" --db frozen.db
	mkdir -p still
	chmod 555 still
	refuses 'a new file in a read-only folder' 'still/a.db' sim "${quick[@]}" --db still/a.db
	chmod 755 still
	cp good.db still/b.db
	chmod 555 still
	refuses 'a file in a read-only folder' 'still/b.db.*(read-only|denied|writable)' sim "${quick[@]}" --db still/b.db
	chmod 755 still
	skep=$plain
else
	skip 'read-only files and folders' 'this system does not let a test give up root'
fi
rm -f probe

# ---- locked ---------------------------------------------------------------------------------------------------------

cp good.db held.db
exec 5< <(exec python3 -c 'import sqlite3, time
d = sqlite3.connect("held.db", isolation_level=None); d.execute("BEGIN EXCLUSIVE"); print("held", flush=True); time.sleep(60)')
holder=$!
read -r _ <&5
refuses 'a locked database' 'held.db.*locked' sim "${quick[@]}" --db held.db
kill "$holder"
exec 5<&-

# Held from some round on until well after the last: nothing is lost, and the wait is explained.
"$skep" sim "$root/scenarios/two-datacentres.yaml" --set train.until.steps=400 --db busy.db -q >"$out" 2>"$err" &
writer=$!
if rounds_come busy.db 3 "$writer"; then pass 'a run that will wait'; else fail 'a run that will wait' "$(cat "$err")"; fi
exec 5< <(exec python3 -c 'import sqlite3, time
d = sqlite3.connect("busy.db", isolation_level=None, timeout=60); d.execute("BEGIN IMMEDIATE"); print("held", flush=True); time.sleep(120)')
holder=$!
read -r _ <&5
check 'it is not done before' kill -0 "$writer"
for _ in {1..600}; do
	grep -q 'is free' "$err" && break
	sleep 0.1
done
sleep 11
check 'it waits for longer than 10 s' kill -0 "$writer"
kill "$holder"
exec 5<&-
wait "$writer"
check 'and then ends well' equals 0 $?
check 'and has said what it waits for' \
	grep -qE '^skep: busy.db is locked by another program: run 1 waits with its last [0-9]+ rounds' "$err"
check 'and nothing else' equals 1 "$(wc -l <"$err")"
check 'all its rounds are there' equals 'done 400' \
	"$(query busy.db "SELECT status || ' ' || (SELECT count(*) FROM rounds) FROM runs")"

# ---- a full disk ----------------------------------------------------------------------------------------------------

mkdir small
if with_mounts sh -c 'mount -t tmpfs -o size=64k tmpfs small' 2>/dev/null; then
	with_mounts bash -c '
		mount -t tmpfs -o size=64k tmpfs small
		"$@" --db small/a.db >"$0.out" 2>"$0.err" </dev/null
		status=$?
		ls -A small >"$0.left"
		exit "$status"' "$scratch/full" timeout 300 "$skep" sim "${quick[@]}"
	status=$?
	out=$scratch/full.out err=$scratch/full.err
	if [ "$status" = 2 ] && [ ! -s "$scratch/full.left" ] && grep -qE 'disk.* full' "$err"; then
		pass 'no room for a database'
	else
		fail 'no room for a database' "$(seen; echo left: "$(cat "$scratch/full.left")")"
	fi
	# Room for the schema, not for the run: the run fails and says why; the database stays readable.
	with_mounts bash -c '
		mount -t tmpfs -o size=384k tmpfs small
		"$@" --db small/a.db >"$0.out" 2>"$0.err" </dev/null
		status=$?
		python3 -c "import sqlite3
d = sqlite3.connect(\"small/a.db\")
print(d.execute(\"PRAGMA integrity_check\").fetchone()[0], *d.execute(\"SELECT count(*), max(status) FROM runs\").fetchone())" >"$0.sound" 2>&1
		exit "$status"' "$scratch/full" timeout 300 "$skep" sim "$root/scenarios/two-datacentres.yaml" --set train.arithmetic=none
	status=$?
	if [ "$status" = 1 ] && grep -qE '^skep: run 1 was not recorded to its end: .*disk.* full' "$err" &&
		! grep -q 'lost its last worker' "$err"; then
		pass 'the disk fills up during the run'
	else
		fail 'the disk fills up during the run' "$(seen)"
	fi
	check 'it leaves a sound database, in which the run goes on no more' equals 'ok 1 dead' "$(cat "$scratch/full.sound")"
	with_mounts bash -c '
		mount -t tmpfs -o size=2m tmpfs small
		cp good.db small/a.db
		cat /dev/zero >small/rest 2>/dev/null
		exec "$@" --db small/a.db >"$0.out" 2>"$0.err" </dev/null' "$scratch/full" timeout 300 "$skep" runs list
	status=$?
	if [ "$status" = 0 ] && [ ! -s "$err" ] && grep -q 'one worker' "$out"; then
		pass 'what is on a full disk is read'
	else
		fail 'what is on a full disk is read' "$(seen)"
	fi
	out=$scratch/out err=$scratch/err
else
	skip 'a full disk' 'this system does not let a test mount a small file system'
fi

# ---- a run that dies ------------------------------------------------------------------------------------------------

"$skep" sim "$root/scenarios/two-datacentres.yaml" --set train.until.steps=100000 --db dead.db -q >"$out" 2>"$err" &
victim=$!
if rounds_come dead.db 3 "$victim"; then pass 'a run closes rounds'; else fail 'a run closes rounds' "$(cat "$err")"; fi
kill -9 "$victim"
wait "$victim" 2>/dev/null
check 'a killed run leaves a sound database' equals ok "$(query dead.db 'PRAGMA integrity_check')"
check 'with all the rounds it had finished' test "$(query dead.db 'SELECT count(*) FROM rounds')" -ge "$rounds" -a "$rounds" -ge 3
check 'each of them whole' equals 0 "$(query dead.db "SELECT count(*) FROM v_ledger WHERE verdict <> 'kept'")"
accepts 'it is listed' runs list --db dead.db
check 'with what it had finished' grep -qE ' [1-9][0-9]* rounds +[0-9.]+ (ms|s|min|h) ' "$out"
accepts 'the next run goes on with it' sim "${quick[@]}" --db dead.db
check 'which marks it' equals dead "$(query dead.db 'SELECT status FROM runs ORDER BY id LIMIT 1')"
check 'and finishes' equals 'done' "$(query dead.db 'SELECT status FROM runs ORDER BY id DESC LIMIT 1')"
refuses 'a dead run is not compared' '^skep: no scenario has both a finished simulated and a finished real run' compare --db dead.db

# ---- several at once ------------------------------------------------------------------------------------------------

for i in 1 2 3 4; do
	"$skep" sim "${quick[@]}" --db shared.db -q --seed $i >"$scratch/out.$i" 2>"$scratch/err.$i" </dev/null &
	pids[i]=$!
done
for i in 1 2 3 4; do
	wait "${pids[i]}"
	check "writer $i of four at once" equals 0 $?
done
check 'four runs are there' equals 4 "$(query shared.db "SELECT count(*) FROM runs WHERE status = 'done'")"
plan

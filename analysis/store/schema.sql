-- SPDX-License-Identifier: Apache-2.0
--
-- The database of both worlds. docs/database.md explains it table by table. Times are seconds since the run began, sizes are
-- bytes, rates are bytes per second; NULL means "not known", "not limited" or "none", as the comment says.
-- Change user_version and SKEP_SCHEMA_VERSION in database.c together.

PRAGMA application_id = 1936418160; -- the letters "skep"
PRAGMA user_version = 15;

CREATE TABLE runs (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	scenario TEXT NOT NULL, -- its name
	path TEXT NOT NULL,
	text TEXT NOT NULL, -- as read, with overrides
	world TEXT NOT NULL CHECK (world IN ('sim', 'real')),
	device TEXT NOT NULL,
	pace INTEGER NOT NULL,
	shape INTEGER NOT NULL,
	seed INTEGER NOT NULL, -- the 64 bits of an unsigned number
	version TEXT NOT NULL, -- of the code
	host TEXT NOT NULL,
	pid INTEGER NOT NULL, -- of the process that writes this run
	started TEXT NOT NULL, -- UTC
	status TEXT NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done', 'failed', 'dead')),
	model TEXT NOT NULL,
	topology TEXT NOT NULL,
	arithmetic TEXT NOT NULL CHECK (arithmetic IN ('none', 'real', 'law')),
	number_format TEXT NOT NULL, -- sim: of times and tensors; real: what the device computes in, and what it is paced as
	workers INTEGER NOT NULL, -- the directory is worker number `workers`
	stages INTEGER NOT NULL,
	vstages INTEGER NOT NULL, -- of the model: stages, unless pipelines are interleaved; each counts microbatches
	rounds_planned INTEGER NOT NULL,
	microbatches INTEGER NOT NULL, -- per round; where rounds differ the mean, rounded
	samples_per_microbatch INTEGER NOT NULL,
	target_loss REAL, -- NULL: none
	first_round INTEGER NOT NULL, -- it began with what another run had kept as of the start of this round; 0: by itself
	continues INTEGER REFERENCES runs, -- that run; NULL: there is none, or this database does not have it
	kept_as INTEGER, -- its number in the folder of its checkpoints; NULL: it keeps nothing there
	-- The result: NULL until the run has ended.
	digest TEXT, -- 16 hexadecimal digits
	steps INTEGER,
	samples INTEGER, -- counted in the last stage
	tokens INTEGER,
	time_s REAL,
	throughput_samples_per_s REAL,
	utilisation REAL,
	passes_s REAL, -- mean of the rounds: from the first forward to the last backward pass; NULL: none
	reduction_s REAL, -- mean of the rounds: from there, or the last inner step, to the end of the reduction; NULL: none
	bytes_pipeline INTEGER,
	bytes_sync INTEGER,
	issued INTEGER, -- gradients: one per microbatch and stage, or virtual stage (in `rounds` it is microbatches)
	counted INTEGER,
	lost INTEGER,
	preemptions INTEGER,
	joins INTEGER,
	migrations INTEGER,
	final_loss REAL, -- NULL: no arithmetic; Inf: diverged
	final_validation_loss REAL, -- NULL: there was no validation, or no arithmetic
	time_to_target_s REAL, -- NULL: no target, or not reached; where there are validations, by one of these
	cost_to_target_usd REAL, -- NULL: the same, or prices not known
	cost_usd REAL, -- of machines, and of traffic where the topology has a price of it; NULL: prices not known
	egress_usd REAL, -- of this, what was paid for traffic; NULL: prices not known, or none
	events INTEGER,
	wall_s REAL, -- of the host, not of the world's clock
	ops_dropped INTEGER, -- operations beyond the cap, not in `ops`
	notes_dropped INTEGER, -- notes beyond the cap, not in `notes`
	activity_bin_s REAL, -- length of a bin of `activity`; NULL: there are none
	-- of blocks with experts, with real arithmetic: most tokens of one over the mean, part of the choices dropped, load balance
	expert_imbalance REAL, expert_dropped REAL, expert_balance REAL,
	damaged INTEGER, -- real: tensors that came with a wrong sum, and were sent again
	extrapolated INTEGER -- the law of `arithmetic: law` was asked outside of what it was fitted in: 0, 1; NULL: no law
) STRICT;

CREATE TABLE sources ( -- the files that the scenario named, as the run read them
	run INTEGER NOT NULL REFERENCES runs,
	number INTEGER NOT NULL,
	path TEXT NOT NULL,
	bytes INTEGER, -- NULL: could not be read once more; so the others
	checksum INTEGER, -- FNV-1a of the bytes, the 64 bits of an unsigned number
	text TEXT, -- NULL also: longer than 64 KiB
	PRIMARY KEY (run, number)
) STRICT;

CREATE TABLE places (
	run INTEGER NOT NULL REFERENCES runs,
	place INTEGER NOT NULL,
	name TEXT NOT NULL,
	PRIMARY KEY (run, place)
) STRICT, WITHOUT ROWID;

-- The network between two places; empty for a topology of more than 1,024 places.
CREATE TABLE pairs (
	run INTEGER NOT NULL REFERENCES runs,
	source INTEGER NOT NULL, -- place
	destination INTEGER NOT NULL, -- place
	capacity_bytes_per_s REAL, -- of one ordered pair of machines, or of one flow by its window and loss; NULL: not limited
	latency_s REAL NOT NULL, -- one way
	shared_bytes_per_s REAL, -- of all traffic together, by the link or by a site's own; NULL: not limited
	egress_usd_per_GB REAL, -- what a sender pays for traffic; NULL: not known
	PRIMARY KEY (run, source, destination)
) STRICT, WITHOUT ROWID;

CREATE TABLE workers (
	run INTEGER NOT NULL REFERENCES runs,
	worker INTEGER NOT NULL,
	role TEXT NOT NULL CHECK (role IN ('worker', 'directory')),
	gpu TEXT, -- NULL: the directory
	place INTEGER NOT NULL,
	up_bytes_per_s REAL, -- NULL: not limited
	down_bytes_per_s REAL, -- NULL: not limited
	price_usd_per_h REAL, -- at the start of the run; NULL: not known
	first_stage INTEGER, -- NULL: a spare, or the directory
	-- NULL until the run has ended.
	final_stage INTEGER,
	final_epoch INTEGER,
	alive_s REAL,
	compute_s REAL, -- compute lane busy
	arithmetic_s REAL, -- real arithmetic in the compute lane; equals compute_s in a simulated run
	events INTEGER,
	digest TEXT,
	PRIMARY KEY (run, worker)
) STRICT, WITHOUT ROWID;

-- Closed rounds only: each is one transaction.
CREATE TABLE rounds (
	run INTEGER NOT NULL REFERENCES runs,
	round INTEGER NOT NULL,
	opened_s REAL NOT NULL,
	closed_s REAL NOT NULL,
	issued INTEGER NOT NULL, -- microbatches (in `runs` it is gradients: these, times virtual stages)
	loss REAL, -- mean over the microbatches counted in the last stage
	-- Most steps that the parameters lacked on which a gradient was computed; with waves (sync.method: wsp) most microbatches of
	-- each other virtual worker, and in local_staleness of its own; NULL: none was, or there are no waves.
	staleness INTEGER,
	local_staleness INTEGER,
	cost_usd REAL, -- of all workers and of traffic, from the start of the run until closed_s; written at its end; NULL: prices not known
	bytes_pipeline INTEGER NOT NULL, -- sent by all workers from the start of the run until closed_s
	bytes_sync INTEGER NOT NULL,
	PRIMARY KEY (run, round)
) STRICT, WITHOUT ROWID;

-- What the parameters were worth on samples that nothing is trained on: one row for each validation that has ended.
CREATE TABLE validations (
	run INTEGER NOT NULL REFERENCES runs,
	round INTEGER NOT NULL, -- rounds closed before it
	step INTEGER NOT NULL, -- optimizer steps behind the parameters
	began_s REAL NOT NULL, -- the parameters are those of then ...
	ended_s REAL NOT NULL, -- ... and the loss is known now
	asked INTEGER NOT NULL, -- microbatches
	counted INTEGER NOT NULL, -- of these, in the mean; the rest was lost
	loss REAL, -- mean, of a language model in nats for each token; NULL: no arithmetic, or nothing in the mean
	perplexity REAL, -- e to that; NULL also: a model without tokens
	bytes_pipeline INTEGER NOT NULL, -- sent by all workers from the start of the run until ended_s, for validations too
	bytes_sync INTEGER NOT NULL,
	PRIMARY KEY (run, round)
) STRICT, WITHOUT ROWID;

-- When each worker was there; written at the end of the run.
CREATE TABLE incarnations (
	run INTEGER NOT NULL REFERENCES runs,
	worker INTEGER NOT NULL,
	started_s REAL NOT NULL,
	ended_s REAL NOT NULL,
	cost_usd REAL, -- NULL: its price is not known
	PRIMARY KEY (run, worker, started_s)
) STRICT, WITHOUT ROWID;

CREATE TABLE stage_rounds (
	run INTEGER NOT NULL REFERENCES runs,
	round INTEGER NOT NULL,
	stage INTEGER NOT NULL, -- or virtual stage, where a stage has several: virtual stage q is one of stage q % stages
	counted INTEGER NOT NULL, -- microbatches
	lost INTEGER NOT NULL,
	members INTEGER NOT NULL, -- workers that took part in the reduction; with sync.method async merges that had some of it
	PRIMARY KEY (run, round, stage)
) STRICT, WITHOUT ROWID;

CREATE TABLE links (
	run INTEGER NOT NULL REFERENCES runs,
	source INTEGER NOT NULL, -- worker
	destination INTEGER NOT NULL, -- worker
	traffic TEXT NOT NULL CHECK (traffic IN ('pipeline', 'sync', 'state', 'control')),
	class TEXT NOT NULL CHECK (class IN ('inside', 'between')), -- one place, or two
	messages INTEGER NOT NULL,
	bytes INTEGER NOT NULL,
	PRIMARY KEY (run, source, destination, traffic)
) STRICT, WITHOUT ROWID;

CREATE TABLE ops (
	run INTEGER NOT NULL REFERENCES runs,
	worker INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	round INTEGER NOT NULL,
	stage INTEGER NOT NULL,
	microbatch INTEGER NOT NULL,
	kind TEXT NOT NULL,
	lane TEXT NOT NULL,
	begin_s REAL NOT NULL,
	end_s REAL NOT NULL,
	busy_s REAL NOT NULL -- real arithmetic inside it; equals end_s - begin_s in a simulated run
) STRICT;
CREATE INDEX ops_by_run ON ops (run);

-- All operations of a run, however long it was: of each worker in bins of equal length, written at its end. A bin without
-- any is not a row; bin 0 begins with the run.
CREATE TABLE activity (
	run INTEGER NOT NULL REFERENCES runs,
	worker INTEGER NOT NULL,
	bin INTEGER NOT NULL,
	forward_s REAL NOT NULL,
	backward_s REAL NOT NULL,
	step_s REAL NOT NULL,
	reduce_s REAL NOT NULL, -- the reduce lane without steps, beside the others
	state_s REAL NOT NULL, -- saved, loaded, copied
	PRIMARY KEY (run, worker, bin)
) STRICT, WITHOUT ROWID;

CREATE TABLE notes (
	run INTEGER NOT NULL REFERENCES runs,
	time_s REAL NOT NULL,
	worker INTEGER NOT NULL, -- who says it
	epoch INTEGER NOT NULL,
	kind TEXT NOT NULL,
	round INTEGER NOT NULL,
	stage INTEGER, -- of 'member', 'outer_updated', 'lost' and 'counted': the virtual stage, where a stage has several
	microbatch INTEGER,
	peer INTEGER, -- of whom it is said
	peer_epoch INTEGER,
	value INTEGER NOT NULL
) STRICT;
CREATE INDEX notes_by_run ON notes (run);

-- Of real runs: every event that each machine was told, for `skep replay`. The bytes of a machine's parts in their order
-- are its log (exec/loop/log.h); none is written once a run has 64 MiB.
CREATE TABLE event_log (
	run INTEGER NOT NULL REFERENCES runs,
	worker INTEGER NOT NULL,
	part INTEGER NOT NULL, -- from 0
	checksum INTEGER NOT NULL, -- of the bytes: FNV-1a, the 64 bits of an unsigned number
	bytes BLOB NOT NULL,
	PRIMARY KEY (run, worker, part)
) STRICT;

CREATE TABLE labels ( -- by which a run is found
	run INTEGER NOT NULL REFERENCES runs,
	kind TEXT NOT NULL CHECK (kind IN ('name', 'tag')), -- a run has one name at most, and no two have the same
	label TEXT NOT NULL,
	PRIMARY KEY (run, kind, label)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX labels_by_name ON labels (label) WHERE kind = 'name';

-- What `skep sweep` was asked for: all its combinations, with the runs that are there.
CREATE TABLE sweeps (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	scenario TEXT NOT NULL, -- its name
	path TEXT NOT NULL,
	version TEXT NOT NULL, -- of the code
	started TEXT NOT NULL, -- UTC, the first time
	identity TEXT NOT NULL UNIQUE, -- of its keys, values and combinations in their order: 16 hexadecimal digits
	combinations INTEGER NOT NULL -- of values and seeds
) STRICT;

CREATE TABLE sweep_keys ( -- those that vary, in the order given
	sweep INTEGER NOT NULL REFERENCES sweeps,
	position INTEGER NOT NULL, -- from 0
	key TEXT NOT NULL,
	PRIMARY KEY (sweep, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE sweep_values ( -- a point is one choice of a value for every key
	sweep INTEGER NOT NULL REFERENCES sweeps,
	point INTEGER NOT NULL, -- from 0
	position INTEGER NOT NULL, -- of the key
	value TEXT NOT NULL, -- as given
	PRIMARY KEY (sweep, point, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE sweep_runs (
	sweep INTEGER NOT NULL REFERENCES sweeps,
	number INTEGER NOT NULL, -- of the combination, from 0
	point INTEGER NOT NULL,
	seed INTEGER NOT NULL, -- the 64 bits of an unsigned number
	identity TEXT NOT NULL, -- of scenario, overrides, seed, files and code; two sweeps may share a run
	run INTEGER REFERENCES runs, -- NULL: not there yet
	PRIMARY KEY (sweep, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX sweep_runs_by_identity ON sweep_runs (identity);

-- What the accuracy plot shows.
CREATE VIEW losses AS
	SELECT run, round, closed_s AS time_s, loss FROM rounds WHERE loss IS NOT NULL;

-- What the runs that a run goes on with had spent when the rounds before its own had closed, all together.
CREATE VIEW v_before AS
	WITH RECURSIVE line(run, earlier, round) AS (
		SELECT id, continues, first_round FROM runs WHERE continues IS NOT NULL
		UNION ALL
		SELECT line.run, runs.continues, runs.first_round
		FROM line
		JOIN runs ON runs.id = line.earlier
		WHERE runs.continues IS NOT NULL
	)
	SELECT line.run, sum(last.closed_s) AS time_s,
		sum((
			SELECT sum(counted) FROM stage_rounds
			WHERE stage_rounds.run = earlier AND stage_rounds.round < line.round AND stage = vstages - 1
		)) AS counted, -- microbatches, in the last stage
		sum(last.bytes_pipeline) AS bytes_pipeline, sum(last.bytes_sync) AS bytes_sync
	FROM line
	JOIN runs ON runs.id = earlier
	JOIN (
		SELECT rounds.*, lead(round, 1, 4294967296) OVER (PARTITION BY run ORDER BY round) AS next FROM rounds
	) AS last ON last.run = earlier AND last.round < line.round AND last.next >= line.round
	GROUP BY line.run;

-- Validations against what it took to get there; bytes of pipeline and reductions.
CREATE VIEW v_validations AS
	SELECT run, round, step, ended_s AS time_s, loss, perplexity, validations.counted,
		microbatches_issued * samples_per_microbatch AS samples,
		CASE WHEN samples > 0 THEN microbatches_issued * samples_per_microbatch * (tokens / samples) END AS tokens,
		validations.bytes_pipeline + validations.bytes_sync AS bytes, validations.bytes_sync AS bytes_sync
	FROM (
		SELECT validations.*, first_round * microbatches + (
			SELECT coalesce(sum(issued), 0) FROM rounds WHERE rounds.run = validations.run AND rounds.round < validations.round
		) AS microbatches_issued
		FROM validations
		JOIN runs ON runs.id = run
	) AS validations
	JOIN runs ON runs.id = run;

CREATE VIEW v_throughput AS
	SELECT run, round, closed_s AS time_s, samples,
		samples / nullif(closed_s - coalesce(lag(closed_s) OVER (PARTITION BY run ORDER BY round), opened_s), 0.0)
			AS samples_per_s
	FROM (
		SELECT rounds.run, rounds.round, opened_s, closed_s,
			stage_rounds.counted * samples_per_microbatch AS samples
		FROM rounds
		JOIN runs ON runs.id = rounds.run
		JOIN stage_rounds USING (run, round)
		WHERE stage = vstages - 1
	);

-- What one ordered pair of workers can get when nothing else moves.
CREATE VIEW v_pairs AS
	SELECT a.run, a.worker AS source, b.worker AS destination,
		nullif(min(coalesce(a.up_bytes_per_s, 9e999), coalesce(b.down_bytes_per_s, 9e999),
			coalesce(capacity_bytes_per_s, 9e999), coalesce(shared_bytes_per_s, 9e999)), 9e999)
			AS capacity_bytes_per_s,
		latency_s,
		CASE WHEN a.place = b.place THEN 'inside' ELSE 'between' END AS class
	FROM workers AS a
	JOIN workers AS b ON b.run = a.run AND b.worker <> a.worker AND b.role = 'worker'
	JOIN pairs ON pairs.run = a.run AND pairs.source = a.place AND pairs.destination = b.place
	WHERE a.role = 'worker';

-- The promise, from the totals: in each closed round, every stage has counted or lost what was issued.
CREATE VIEW v_ledger AS
	WITH RECURSIVE every(run, stage, stages) AS (
		SELECT id, 0, vstages FROM runs
		UNION ALL
		SELECT run, stage + 1, stages FROM every WHERE stage + 1 < stages
	)
	SELECT run, round, stage, issued, counted, lost,
		CASE WHEN issued = counted + lost THEN 'kept' ELSE 'broken' END AS verdict
	FROM rounds
	JOIN every USING (run)
	LEFT JOIN stage_rounds USING (run, round, stage);

-- The promise, gradient by gradient: 'kept', or what is wrong with it. A round and stage whose notes are not all there
-- (the cap, or a process that died with notes unsent) is one row without a microbatch that says 'not seen'.
CREATE VIEW v_counted_once AS
	WITH RECURSIVE every(run, stage, stages) AS (
		SELECT id, 0, vstages FROM runs
		UNION ALL
		SELECT run, stage + 1, stages FROM every WHERE stage + 1 < stages
	),
	bit(i) AS (
		SELECT 0
		UNION ALL
		SELECT i + 1 FROM bit WHERE i < 63
	),
	grants(run, round, microbatch, more) AS (
		SELECT run, round, microbatch, value - 1 FROM notes WHERE kind = 'issued' AND value > 0
		UNION ALL
		SELECT run, round, microbatch + 1, more - 1 FROM grants WHERE more > 0
	),
	granted AS (
		SELECT run, round, count(*) AS issued FROM grants GROUP BY run, round
	),
	merged AS MATERIALIZED (
		SELECT run, round, stage, peer AS worker, peer_epoch AS epoch, microbatch + i AS microbatch
		FROM notes JOIN bit ON (value >> i) & 1 WHERE kind = 'outer_updated'
	),
	seat AS MATERIALIZED ( -- this and `outer_updated`: else each of count_notes looks through all notes of its run
		SELECT run, round, stage, peer AS worker, peer_epoch AS epoch, value AS claimed
		FROM notes WHERE kind = 'member'
	),
	member AS (
		SELECT run, round, stage, worker, epoch, claimed FROM seat
		UNION ALL
		SELECT run, round, stage, worker, epoch, count(*) FROM merged GROUP BY run, round, stage, worker, epoch
	),
	voided AS MATERIALIZED ( -- schedule.on_loss: void; what was counted of microbatches before this number is thrown away, ...
		SELECT run, round, max(microbatch) AS before, max(time_s) AS time_s FROM notes WHERE kind = 'round_voided'
		GROUP BY run, round
	),
	again AS MATERIALIZED ( -- ... unless they were granted again since
		SELECT run, round, notes.microbatch, max(notes.time_s) AS time_s FROM notes JOIN voided USING (run, round)
		WHERE kind = 'rerun' AND notes.time_s >= voided.time_s GROUP BY run, round, notes.microbatch
	),
	count_notes AS (
		SELECT run, round, stage, worker, epoch, microbatch
		FROM notes
		LEFT JOIN voided USING (run, round)
		LEFT JOIN again USING (run, round, microbatch)
		WHERE kind = 'counted' AND (before IS NULL OR microbatch >= before OR notes.time_s >= again.time_s)
	),
	told AS (
		SELECT run, round, stage, worker, epoch, count(*) AS told FROM count_notes
		GROUP BY run, round, stage, worker, epoch
	),
	short AS (
		SELECT run, round, stage, sum(claimed) AS claimed, max(claimed > coalesce(told, 0)) AS untold
		FROM member
		LEFT JOIN told USING (run, round, stage, worker, epoch)
		GROUP BY run, round, stage
	),
	seen AS (
		SELECT rounds.run, rounds.round, every.stage,
			coalesce(granted.issued, 0) >= rounds.issued
			AND coalesce(short.claimed, 0) >= coalesce(stage_rounds.counted, 0)
			AND coalesce(short.untold, 0) = 0 AS complete
		FROM rounds
		JOIN every USING (run)
		LEFT JOIN granted USING (run, round)
		LEFT JOIN stage_rounds USING (run, round, stage)
		LEFT JOIN short USING (run, round, stage)
	),
	claim(run, round, stage, microbatch, issued, counted, lost) AS (
		SELECT run, round, stage, microbatch, 1, 0, 0 FROM grants JOIN every USING (run)
		UNION ALL
		SELECT run, round, stage, microbatch, 0, 1, 0
		FROM count_notes
		JOIN seat USING (run, round, stage, worker, epoch)
		UNION ALL
		SELECT run, round, stage, microbatch, 0, 1, 0
		FROM count_notes JOIN merged USING (run, round, stage, worker, epoch, microbatch)
		UNION ALL
		SELECT run, round, stage, microbatch + i, 0, 0, 1
		FROM notes JOIN bit ON (value >> i) & 1 WHERE kind = 'lost'
	)
	SELECT run, round, stage, microbatch, sum(counted) AS counted, sum(lost) AS lost,
		CASE
			WHEN sum(issued) = 0 THEN 'never issued'
			WHEN sum(issued) > 1 THEN 'issued twice'
			WHEN sum(counted) + sum(lost) = 1 THEN 'kept'
			WHEN sum(counted) > 1 THEN 'counted twice'
			WHEN sum(counted) = 1 THEN 'counted and lost'
			WHEN sum(lost) > 1 THEN 'lost twice'
			ELSE 'neither'
		END AS verdict
	FROM claim
	JOIN seen USING (run, round, stage)
	WHERE complete
	GROUP BY run, round, stage, microbatch
	UNION ALL
	SELECT run, round, stage, NULL, NULL, NULL, 'not seen' FROM seen WHERE NOT complete;

-- One row per run of a sweep and varied key: to group by its values.
CREATE VIEW v_sweep AS
	SELECT sweep, number, point, seed, run, position, key, value
	FROM sweep_runs
	LEFT JOIN sweep_values USING (sweep, point)
	LEFT JOIN sweep_keys USING (sweep, position);

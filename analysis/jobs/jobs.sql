-- SPDX-License-Identifier: Apache-2.0
--
-- What `skep jobs` adds to a database, with the first one that it writes. docs/database.md explains it table by table. Times are
-- seconds of the simulation.

CREATE TABLE IF NOT EXISTS cluster_runs (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	comparison INTEGER NOT NULL, -- the first of those that one `skep jobs` has made
	name TEXT NOT NULL,
	path TEXT NOT NULL,
	text TEXT NOT NULL, -- as read, with overrides
	policy TEXT NOT NULL,
	seed INTEGER NOT NULL, -- the 64 bits of an unsigned number
	version TEXT NOT NULL, -- of the code
	started TEXT NOT NULL, -- UTC
	topology TEXT NOT NULL,
	machines INTEGER NOT NULL,
	hosts INTEGER NOT NULL,
	jobs INTEGER NOT NULL,
	completion_mean_s REAL NOT NULL,
	completion_p50_s REAL NOT NULL,
	completion_p95_s REAL NOT NULL,
	completion_p99_s REAL NOT NULL,
	queued_mean_s REAL NOT NULL,
	queued_most_s REAL NOT NULL,
	waited_mean_s REAL NOT NULL,
	makespan_s REAL NOT NULL,
	utilisation REAL NOT NULL,
	useful REAL NOT NULL,
	jain REAL NOT NULL,
	rho_mean REAL NOT NULL,
	rho_most REAL NOT NULL,
	usd REAL, -- NULL: a price is not known
	cluster_usd REAL, -- NULL: the same
	preemptions INTEGER NOT NULL,
	resizes INTEGER NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS cluster_jobs (
	cluster_run INTEGER NOT NULL REFERENCES cluster_runs,
	job INTEGER NOT NULL,
	name TEXT NOT NULL,
	machines INTEGER NOT NULL, -- that it asks for
	arrival_s REAL NOT NULL,
	start_s REAL NOT NULL,
	end_s REAL NOT NULL,
	alone_s REAL NOT NULL, -- that it takes on what it asks for
	fair_s REAL NOT NULL, -- that it takes on an equal part of the cluster
	machine_s REAL NOT NULL, -- machine-seconds that it had
	restart_machine_s REAL NOT NULL, -- of these, in restarts
	usd REAL, -- NULL: a price is not known
	preemptions INTEGER NOT NULL,
	resizes INTEGER NOT NULL,
	PRIMARY KEY (cluster_run, job)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS cluster_spans ( -- a job with a number of machines, and no change
	cluster_run INTEGER NOT NULL REFERENCES cluster_runs,
	job INTEGER NOT NULL,
	begin_s REAL NOT NULL,
	end_s REAL NOT NULL,
	machines INTEGER NOT NULL,
	PRIMARY KEY (cluster_run, job, begin_s)
) STRICT, WITHOUT ROWID;

/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_network.c - processor time of the network model on random flows over a star (F) and over a full matrix of
 * private pairs (X), each a chain of transfers per slot; the makespan stands beside an exact one from an independent
 * solver.
 *
 *     bench_network            all rows but the long ones
 *     bench_network long       all rows
 *     bench_network F 128 512 10   one row: kind, hosts, slots, flows per slot
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/unit/flow_random.h"
#include "topologies/network.h"

struct row {
	char kind; /* F or X */
	bool is_long;
	uint32_t hosts, slots, each;
	double makespan_s; /* exact; NAN: not known */
};

static const struct row rows[] = {
	{'F', false, 16, 16, 10, 17.262426316},
	{'F', false, 16, 64, 10, 40.199893617},
	{'F', false, 128, 128, 10, 17.978721704},
	{'F', false, 128, 512, 10, 39.201652554},
	{'F', false, 1024, 1024, 10, 18.220786669},
	{'F', true, 1024, 4096, 2, 14.493694597},
	{'F', false, 4096, 4096, 5, 12.516379635},
	{'X', false, 64, 64, 10, 14.262981491},
	{'X', false, 128, 128, 10, 13.031767802},
	{'X', false, 256, 256, 10, 16.207773464},
	{'X', false, 512, 512, 10, 19.563919465},
	{'X', false, 1024, 1024, 10, 20.361607076},
};

/* Processor time, so that other programs on the machine disturb less. */
static double cpu_now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *need(void *memory)
{
	if (!memory) {
		perror("bench_network");
		abort();
	}
	return memory;
}

static void make_star(struct skep_topology *topology, uint32_t hosts)
{
	topology->places = 1;
	topology->pair = need(calloc(1, sizeof *topology->pair));
	topology->pair[0] = (struct skep_pair){INFINITY, 0.002, INFINITY};
	for (uint32_t i = 0; i < hosts; i++) {
		topology->machine[i].up_Bps = 1.25e8 * (0.5 + u01(2, i));
		topology->machine[i].down_Bps = 1.25e8 * (0.5 + u01(3, i));
	}
}

static void make_matrix(struct skep_topology *topology, uint32_t hosts)
{
	topology->places = hosts;
	topology->pair = need(calloc((size_t)hosts * hosts, sizeof *topology->pair));
	for (size_t i = 0; i < (size_t)hosts * hosts; i++)
		topology->pair[i] =
			(struct skep_pair){1.25e8 * (0.1 + 1.8 * u01(31, i)), 0.001 + 0.099 * u01(32, i), INFINITY};
	for (uint32_t i = 0; i < hosts; i++)
		topology->machine[i] = (struct skep_machine){.place = i, .up_Bps = INFINITY, .down_Bps = INFINITY};
}

static void start_flow(struct skep_network *network, skep_time now, uint32_t hosts, uint32_t flow)
{
	uint32_t source = (uint32_t)(rnd(11, flow) % hosts);
	uint32_t destination = (uint32_t)((source + 1 + rnd(12, flow) % (hosts - 1)) % hosts);
	uint64_t bytes = (uint64_t)(1e6 * (1 + 99 * u01(13, flow)));
	if (!skep_network_start(network, now, source, destination, bytes, flow))
		need(NULL);
}

static skep_time run_slots(struct skep_network *network, const struct row *row)
{
	skep_time now = 0;
	for (uint32_t j = 0; j < row->slots; j++)
		start_flow(network, 0, row->hosts, j * row->each);
	while (skep_network_flows(network) > 0) {
		uint64_t tag[64];
		now = skep_network_next(network);
		uint32_t got = skep_network_advance(network, now, tag, 64);
		for (uint32_t i = 0; i < got; i++)
			if ((tag[i] + 1) % row->each != 0)
				start_flow(network, now, row->hosts, (uint32_t)tag[i] + 1);
	}
	return now;
}

static void run_row(const struct row *row)
{
	struct skep_topology topology = {.machines = row->hosts};
	topology.machine = need(calloc(row->hosts + 1, sizeof *topology.machine));
	topology.machine[row->hosts] = (struct skep_machine){.up_Bps = INFINITY, .down_Bps = INFINITY};
	if (row->kind == 'F')
		make_star(&topology, row->hosts);
	else
		make_matrix(&topology, row->hosts);
	double begin_s = cpu_now_s();
	struct skep_network *network = need(skep_network_create(&topology));
	double makespan_s = 1e-9 * (double)run_slots(network, row), cpu_s = cpu_now_s() - begin_s;
	skep_network_destroy(network);
	free(topology.machine);
	free(topology.pair);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	printf("%c hosts=%u slots=%u each=%u makespan_s=%.9f error=%.1e cpu_s=%.4f flows_per_s=%.0f peak_MiB=%.1f\n",
		row->kind, row->hosts, row->slots, row->each, makespan_s, makespan_s / row->makespan_s - 1, cpu_s,
		row->slots * row->each / cpu_s, (double)usage.ru_maxrss / 1024);
}

int main(int argc, char **argv)
{
	if (argc == 5) {
		struct row row = {argv[1][0], false, (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]),
			(uint32_t)atoi(argv[4]), NAN};
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
			if (rows[i].kind == row.kind && rows[i].hosts == row.hosts && rows[i].slots == row.slots &&
				rows[i].each == row.each)
				row = rows[i];
		run_row(&row);
		return 0;
	}
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!rows[i].is_long || (argc == 2 && strcmp(argv[1], "long") == 0))
			run_row(&rows[i]);
	return 0;
}

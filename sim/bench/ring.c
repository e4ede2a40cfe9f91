/* SPDX-License-Identifier: Apache-2.0
 *
 * ring.c - workload R: in each of 2 (members - 1) steps host i sends a chunk to the next in its ring, and goes on when its own
 * send has ended and the chunk from the one before has arrived. In an idle homogeneous network that takes
 * 2 (members - 1) (2 latency + chunk / bandwidth).
 */
#include <stdlib.h>

#include "sim/bench/loop.h"
#include "sim/bench/workload.h"

struct host {
	uint32_t begun, sent, received; /* steps */
};

struct ring {
	struct skep_bench_loop loop;
	const struct skep_ring_work *work;
	struct host *host;
	uint64_t chunk_bytes, left;
};

static uint32_t next_of(const struct ring *ring, uint32_t i)
{
	return (i + 1) % ring->work->members != 0 ? i + 1 : i + 1 - ring->work->members;
}

static void go_on(struct ring *ring, uint32_t i)
{
	struct host *host = &ring->host[i];
	if (host->begun == 2 * (ring->work->members - 1) || host->sent < host->begun || host->received < host->begun)
		return;
	host->begun++;
	skep_bench_send(&ring->loop, i, next_of(ring, i), ring->chunk_bytes, i);
}

static void on_arrival(void *context, uint64_t tag)
{
	struct ring *ring = context;
	uint32_t i = (uint32_t)tag, next = next_of(ring, i);
	ring->left--;
	ring->host[i].sent++;
	ring->host[next].received++;
	go_on(ring, i);
	go_on(ring, next);
}

bool skep_bench_ring(const struct skep_ring_work *work, struct skep_bench_result *ret)
{
	const struct skep_bench_hearer hearer = {NULL, on_arrival};
	uint32_t hosts = work->members * work->rings;
	uint64_t all = (uint64_t)hosts * 2 * (work->members - 1);
	struct ring ring = {.work = work, .chunk_bytes = work->bytes / work->members, .left = all};
	bool good = skep_bench_star(&ring.loop, hosts, false, work->bandwidth_Bps, work->latency_s, work->tick_s) &&
	            (ring.host = skep_bench_array(&ring.loop, hosts, sizeof *ring.host));
	if (good) {
		for (uint32_t i = 0; i < hosts; i++)
			go_on(&ring, i);
		good = skep_bench_loop_run(&ring.loop, &hearer, &ring, &ring.left);
	}
	ret->makespan_s = ring.loop.tick_s * (double)ring.loop.now;
	ret->done = all - ring.left;
	free(ring.host);
	skep_bench_loop_finish(&ring.loop);
	return good;
}

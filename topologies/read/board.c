/* SPDX-License-Identifier: Apache-2.0
 *
 * board.c - reads what a machine has beside the speed of one GPU: the number of its GPUs, the link between them, and
 * the host's PCIe and memory. See board.h.
 *
 * Keeps true: a machine with several GPUs has an inner link; a figure that the file does not give is the default that
 * board.h names, or 0 and not used.
 */
#include "topologies/read/board.h"

#include <math.h>

#include "topologies/read/draft.h"

static void read_inner(struct skep_reader *r, const struct skep_yaml_node *group, struct skep_board *ret)
{
	const struct skep_yaml_node *map = skep_read_map(r, group, "inner", false);
	if (r->diag->set)
		return;
	if (ret->gpus > 1 && !map) {
		skep_reader_fail(r, group, "gpus",
			"%u GPUs in one machine need `inner: {bandwidth, latency}`, the link that joins them (NVLink of "
			"a V100: 150 GB/s one way)",
			ret->gpus);
	} else if (ret->gpus == 1 && map) {
		skep_reader_fail(r, group, "inner", "a machine with one GPU has no inner link: add `gpus`");
	} else if (map) {
		ret->inner_Bps = skep_read_quantity(
			r, map, "bandwidth", SKEP_BANDWIDTH, SKEP_LINK_BPS_MIN, SKEP_LINK_BPS_MAX, NAN);
		ret->inner_latency_s = skep_read_quantity(r, map, "latency", SKEP_TIME, 0, SKEP_LATENCY_S_MAX, NAN);
		skep_reader_close_map(r, map);
	}
}

void skep_board_read(struct skep_reader *r, const struct skep_yaml_node *group, struct skep_board *ret)
{
	*ret = (struct skep_board){0};
	ret->gpus = (uint32_t)skep_read_integer(r, group, "gpus", 1, SKEP_BOARD_GPUS_MAX, 1);
	read_inner(r, group, ret);
	ret->pcie_assumed = !skep_read_has(r, group, "pcie");
	ret->pcie_Bps = skep_read_quantity(
		r, group, "pcie", SKEP_BANDWIDTH, SKEP_LINK_BPS_MIN, SKEP_LINK_BPS_MAX, SKEP_PCIE_BPS);
	const struct skep_yaml_node *host = skep_read_map(r, group, "host", false);
	if (r->diag->set || !host)
		return;
	bool cores = skep_read_has(r, host, "cores"), memory = skep_read_has(r, host, "memory");
	if (!cores || memory || skep_read_has(r, host, "bandwidth")) {
		ret->host_bytes = skep_read_quantity(r, host, "memory", SKEP_BYTES, 1e6, 1e16, NAN);
		ret->host_Bps = skep_read_quantity(r, host, "bandwidth", SKEP_BANDWIDTH, 1e6, 1e16, NAN);
	}
	ret->cores = (uint32_t)skep_read_integer(r, host, "cores", 1, SKEP_BOARD_CORES_MAX, 0);
	ret->host_machines = (uint32_t)skep_read_integer(r, host, "machines", 1, SKEP_BOARD_CORES_MAX, 0);
	if (!r->diag->set && !cores && ret->host_machines > 0)
		skep_reader_fail(r, host, "machines",
			"how many machines share the cores of a host, but its cores are not given: add `cores`");
	skep_reader_close_map(r, host);
}

/* Field by field: there may be holes between them. */
bool skep_board_equal(const struct skep_board *a, const struct skep_board *b)
{
	const double difference[] = {a->inner_Bps - b->inner_Bps, a->inner_latency_s - b->inner_latency_s,
		a->pcie_Bps - b->pcie_Bps, a->host_bytes - b->host_bytes, a->host_Bps - b->host_Bps};
	bool equal = a->gpus == b->gpus && a->pcie_assumed == b->pcie_assumed && a->cores == b->cores &&
	             a->host_machines == b->host_machines;
	for (uint32_t i = 0; i < sizeof difference / sizeof difference[0]; i++)
		equal = equal && fabs(difference[i]) <= 0;
	return equal;
}

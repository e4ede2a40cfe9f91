/* SPDX-License-Identifier: Apache-2.0
 *
 * simgrid.cpp - workload F of sim/bench/workload.h in SimGrid, for simgrid.sh: from the same draws, with an actor for each
 * slot. Prints makespan and processor time.
 *
 *     simgrid HOSTS SLOTS EACH
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "sim/bench/draw.h"

namespace sg = simgrid::s4u;

static double cpu_now_s()
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* Hosts behind one uplink and one downlink each, as skep_bench_star() has them. */
static std::vector<sg::Host *> make_star(uint32_t hosts)
{
	std::vector<sg::Host *> host;
	auto *zone = sg::create_star_zone("star");
	for (uint32_t i = 0; i < hosts; i++) {
		std::string name = std::to_string(i);
		host.push_back(zone->create_host(name, 1e14)->seal());
		auto *up = zone->create_link("u" + name, 1.25e8 * (0.5 + u01(2, i)))->set_latency(0.001)->seal();
		auto *down = zone->create_link("d" + name, 1.25e8 * (0.5 + u01(3, i)))->set_latency(0.001)->seal();
		auto *point = host.back()->get_netpoint();
		zone->add_route(point, nullptr, nullptr, nullptr, {sg::LinkInRoute(up)}, false);
		zone->add_route(nullptr, point, nullptr, nullptr, {sg::LinkInRoute(down)}, false);
	}
	zone->seal();
	return host;
}

static void run_flows(sg::Engine &engine, uint32_t hosts, uint32_t slots, uint32_t each)
{
	auto host = make_star(hosts);
	for (uint32_t j = 0; j < slots; j++)
		sg::Actor::create("slot", host[0], [&host, hosts, j, each]() {
			for (uint64_t i = (uint64_t)j * each; i < (uint64_t)(j + 1) * each; i++) {
				uint64_t from = rnd(11, i) % hosts, to = (from + 1 + rnd(12, i) % (hosts - 1)) % hosts;
				sg::Comm::sendto(host[from], host[to], (uint64_t)(1e6 * (1 + 99 * u01(13, i))));
			}
		});
	engine.run();
}

int main(int argc, char **argv)
{
	double begin_s = cpu_now_s();
	sg::Engine engine(&argc, argv);
	if (argc != 4)
		return 2;
	auto number = [&](int i) { return (uint32_t)strtoul(argv[i], nullptr, 10); };
	run_flows(engine, number(1), number(2), number(3));
	printf("%.9f %.6f\n", sg::Engine::get_clock(), cpu_now_s() - begin_s);
	return 0;
}

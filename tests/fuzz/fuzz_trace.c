/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_trace.c - any bytes as a trace: refused with a sound diagnosis, or read as events that keep what trace.h promises,
 * written and read back the same, counted, and played on a few machines.
 *
 * The first byte of the input chooses options (bits: repair, per GPU, a gap of 1 s, zones) and the second the format
 * (its remainder; detect for most), when both are letters from 'A'; else the whole input is the file with no options.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_trace FOLDER
 *   without SKEP_LIBFUZZER it is a plain program that takes the files of its arguments one after the other
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/hash.h"
#include "tests/fuzz/fuzz.h"
#include "topologies/churn/churn.h"
#include "topologies/churn/live_names.h"
#include "topologies/churn/trace_stats.h"

/* Keeps books of its own, and a digest of all that it was told. */
struct witness {
	struct skep_live_names live;
	skep_time last_ns;
	uint64_t events, digest;
	bool ended;
};

static void mix(struct witness *w, const char *text)
{
	for (; *text; text++)
		w->digest = skep_hash_word(w->digest, (uint8_t)*text);
	w->digest = w->digest * 31 + 1;
}

static bool watch(void *user, const struct skep_trace_event *e)
{
	struct witness *w = user;
	must(!w->ended && e->at_ns >= w->last_ns && e->name && e->gpu && e->zone);
	w->last_ns = e->at_ns;
	w->ended = e->kind == SKEP_TRACE_END;
	w->events++;
	if (e->kind == SKEP_TRACE_JOIN) {
		must(e->name[0] && skep_live_names_find(&w->live, e->name) == SKEP_NOT_LIVE);
		must(skep_live_names_add(&w->live, e->name, e->gpu, e->zone, e->at_ns) == e->slot);
	} else if (e->kind == SKEP_TRACE_LEAVE) {
		must(skep_live_names_find(&w->live, e->name) == e->slot);
		must(w->live.life[e->slot].joined_ns == e->joined_ns);
		must(strcmp(w->live.life[e->slot].zone, e->zone) == 0);
		skep_live_names_remove(&w->live, e->slot);
	}
	w->digest = w->digest * 31 + (uint64_t)e->kind + e->at_ns;
	mix(w, e->name);
	mix(w, e->gpu);
	mix(w, e->zone);
	return true;
}

static bool read_file(const char *path, const struct skep_trace_options *options, struct witness *ret)
{
	struct skep_diag diag = {0};
	struct skep_trace_report report;
	char text[2048];
	memset(ret, 0, sizeof *ret);
	bool ok = skep_trace_read(path, options, watch, ret, &report, &diag);
	must(ok == !diag.set);
	if (!ok)
		check_diag(&diag);
	must(!ok || (ret->ended && report.live == ret->live.count));
	must(!ok || report.joins == report.leaves + report.live);
	skep_trace_repairs_print(&report, "f", text, sizeof text);
	must(options->repair || text[0] == 0);
	skep_live_names_finish(&ret->live);
	return ok;
}

static void write_and_read(const char *path, const struct skep_trace_options *options, const struct witness *first)
{
	struct skep_diag diag = {0};
	struct witness second;
	char folder[] = "/tmp/skep-fuzz-XXXXXX", written[64];
	must(mkdtemp(folder));
	snprintf(written, sizeof written, "%s/trace", folder);
	struct skep_trace_writer *w = skep_trace_writer_create(written, "a fuzzer", "none", &diag);
	must(w && skep_trace_read(path, options, skep_trace_write, w, NULL, &diag) && skep_trace_writer_close(w));
	must(read_file(written, &(struct skep_trace_options){.format = SKEP_TRACE_OWN}, &second));
	must(first->events == second.events && first->digest == second.digest);
	must(unlink(written) == 0 && rmdir(folder) == 0);
}

static void count(const char *path, const struct skep_trace_options *options)
{
	struct skep_trace_stats s;
	struct skep_diag diag = {0};
	must(skep_trace_stats_read(path, options, &s, &diag));
	must(s.instant.losses == s.lives && s.window.losses == s.lives && s.window.bursts <= s.instant.bursts);
	must(s.mean_alive >= 0 && s.mean_alive <= s.report.most * (1 + 1e-6));
	must(s.lives == 0 || (s.p10_s <= s.median_s && s.median_s <= s.p90_s));
	must(!s.fitted || (isfinite(s.weibull.scale_s) && s.weibull.shape > 0));
	must(!s.fitted || s.weibull.log_likelihood >=
				  s.exponential.log_likelihood - 1e-6 * fabs(s.exponential.log_likelihood) - 1e-6);
	skep_trace_stats_finish(&s);
}

static void play(const char *path, const struct skep_trace_options *options)
{
	struct skep_gpu gpu[2] = {{.name = "T4"}, {.name = "V100-SXM2-16"}};
	struct skep_machine machine[6] = {
		{.gpu = 0}, {.gpu = 1}, {.gpu = 0}, {.gpu = 1}, {.gpu = 0}, {.gpu = UINT32_MAX}};
	struct skep_topology topology = {.name = "small", .machines = 5, .gpus = 2, .gpu = gpu, .machine = machine};
	struct skep_churn_options o = SKEP_CHURN_DEFAULTS;
	struct skep_churn c;
	struct skep_diag diag = {0};
	bool there[5] = {false};
	o.trace = *options;
	o.copies = 1.5;
	o.jitter_ns = 60000000000;
	o.scale = 0.25;
	if (!skep_churn_read(path, &topology, &o, &c, &diag)) {
		check_diag(&diag);
		return;
	}
	for (uint32_t i = 0; i < c.presents; i++)
		there[c.present[i]] = true;
	for (size_t i = 0; i < c.events; i++) {
		must(i == 0 || c.event[i - 1].at_ns <= c.event[i].at_ns);
		must(c.event[i].worker < 5 && there[c.event[i].worker] != c.event[i].join);
		there[c.event[i].worker] = c.event[i].join;
	}
	skep_churn_finish(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct skep_trace_options o = {.seed = 1};
	struct witness first;
	char path[64];
	int fd;
	if (size >= 2 && data[0] >= 'A' && data[0] <= 'P' && data[1] >= 'A' && data[1] <= 'Z') {
		uint8_t bits = (uint8_t)(data[0] - 'A'), format = (uint8_t)(data[1] - 'A');
		o.repair = bits & 1;
		o.per_gpu = bits & 2;
		o.gap_ns = bits & 4 ? 1000000000 : 0;
		o.zones = bits & 8 ? 3 : 0;
		o.victims = (enum skep_trace_victims)(bits & 3);
		o.format = format < SKEP_TRACE_FORMATS ? (enum skep_trace_format)format : SKEP_TRACE_DETECT;
		o.nodes_path = bits & 8 && o.format == SKEP_TRACE_TASKS ? path : NULL; /* a table may be both */
		data += 2;
		size -= 2;
	}
	make_file(data, size, &fd, path, sizeof path);
	if (read_file(path, &o, &first) && first.events < 100000) {
		write_and_read(path, &o, &first);
		count(path, &o);
		play(path, &o);
	}
	close(fd);
	return 0;
}

#ifndef SKEP_LIBFUZZER
int main(int argc, char **argv)
{
	bool ok = argc > 1;
	for (int i = 1; i < argc; i++)
		ok = fuzz_file(argv[i]) && ok;
	printf("%d inputs\n", argc - 1);
	return ok ? 0 : 1;
}
#endif

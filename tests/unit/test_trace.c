/* SPDX-License-Identifier: Apache-2.0
 *
 * test_trace.c - each trace format by what comes out of it, the books over many moves, large files in little memory, and
 * that what is written reads back.
 */
#include <glob.h>
#include <math.h>
#include <sys/resource.h>

#include "core/random.h"
#include "tests/unit/trace_fixture.h"

/* ---- formats ------------------------------------------------------------------------------------------------------- */

static void own_format(void **state)
{
	(void)state;
	static const char text[] = "# skep trace\n\n0,join,a,T4,west\n  # more\n0, join , b\n1.5,leave,a\n"
				   "2,refused,,nvidia-tesla-v100\n2,refused\n2.000000001,join,a,V100M32\n9,end\n";
	struct record record;
	struct skep_trace_report report = read_events(text, &plain, true, &record);
	assert_string_equal(record.text, "0+a(t4,west) 0+b 1.5-a(t4,west) 2?(v100,) 2? 2.000000001+a(v100-32,) 9.");
	assert_int_equal(report.format, SKEP_TRACE_OWN);
	assert_true(report.joins == 3 && report.leaves == 1 && report.refused == 2);
	assert_true(report.most == 2 && report.live == 2 && report.last_ns == 9000000000u);
	expect("seconds,event,name\n5,join,x\n6,leave,x", &plain, false, "5+x 6-x 6.");
	expect("5,join,x\n", &(struct skep_trace_options){.gpu = "t4"}, true, "5+x(t4,) 5.");
}

static void named_events_with_mark_and_carriage_returns(void **state)
{
	(void)state;
	expect("\xef\xbb\xbf"
	       "60000,add,node1\r\n60000,add,node2\r\n60001,remove,node1\r\n120000,remove,node2\r\n",
		&plain, false, "60+node1 60+node2 60.001-node1 120-node2 120.");
	expect("ms,event,name\n5,add,x\n6,remove,x\n", &(struct skep_trace_options){.format = SKEP_TRACE_NAMED}, false,
		"0.005+x 0.006-x 0.006.");
}

static void counts_name_their_victims_by_rule(void **state)
{
	(void)state;
	static const char text[] = "seconds,count\n0,3\n10,5\n20,5\n30,2\n40,4\n50,4\n";
	struct skep_trace_options o = {.victims = SKEP_VICTIMS_NEWEST};
	expect(text, &o, false, "0+c0 0+c1 0+c2 10+c3 10+c4 30-c4 30-c3 30-c2 40+c5 40+c6 50.");
	o.victims = SKEP_VICTIMS_OLDEST;
	expect(text, &o, false, "0+c0 0+c1 0+c2 10+c3 10+c4 30-c0 30-c1 30-c2 40+c5 40+c6 50.");
	o.zones = 2;
	expect("0,4\n10,2\n20,3\n", &o, true,
		"0+c0(,zone0) 0+c1(,zone1) 0+c2(,zone0) 0+c3(,zone1) 10-c0(,zone0) 10-c1(,zone1) 20+c4(,zone0) 20.");
}

static void random_victims_follow_the_seed(void **state)
{
	(void)state;
	static const char text[] = "0,200\n10,100\n";
	struct skep_trace_options o = {.victims = SKEP_VICTIMS_RANDOM, .seed = 1};
	struct record a, b, c;
	read_events(text, &o, false, &a);
	read_events(text, &o, false, &b);
	o.seed = 2;
	read_events(text, &o, false, &c);
	assert_string_equal(a.text, b.text);
	assert_string_not_equal(a.text, c.text);
	uint32_t low = 0; /* each with the same chance: about half of the victims are of the first hundred */
	for (const char *at = a.text; (at = strstr(at, "-c")); at++)
		low += atoi(at + 2) < 100;
	assert_in_range(low, 30, 70);
}

static void zone_victims_empty_one_zone_first(void **state)
{
	(void)state;
	struct skep_trace_options o = {.victims = SKEP_VICTIMS_ZONE, .zones = 4};
	for (o.seed = 0; o.seed < 20; o.seed++) {
		struct record r;
		read_events("0,40\n10,30\n", &o, true, &r);
		const char *first = strstr(r.text, "-c"), *zone = strchr(first, '(');
		uint32_t same = 0;
		for (const char *at = first; at && (at = strchr(at, '(')); at++)
			same += strncmp(at, zone, 8) == 0;
		assert_int_equal(same, 10);
	}
}

static const char log_text[] =
	"[2020-02-28T23:59:58.000Z] Created instance i-1 with 8 GPU(s) of type v100 in zone us-east-1b\n"
	"[2020-02-28T23:59:59.500Z] Instance with 8 GPU(s) of type k80 creation failed\n"
	"[2020-02-29T00:00:00.000Z] Instance i-1 running in zone us-east-1b\n"
	"[2020-02-29T00:00:01.000Z] Instance slot2 creation failed\n"
	"[2020-02-29T00:00:01.000Z] Instance slot2 not running in zone z\n"
	"[2020-02-29T00:00:02.000Z] Instance slot3 running in zone z\n" /* the log began later than it */
	"[2020-03-01T00:00:00.000Z] Instance i-1 not running in zone us-east-1b\n"
	"[2020-03-01T00:00:10.000Z] Successfully deleted instance i-1\n"
	"[2020-03-01T00:00:11.000Z] Created instance i-1 with 1 GPU(s) of type nvidia-tesla-k80 in zone z\n"
	"[2020-03-01T00:00:12.000Z] Successfully deleted instance i-1\n"
	"[2020-03-01T00:01:12.000Z] Instance slot3 running in zone z\n";

static void availability_log(void **state)
{
	(void)state;
	struct record record;
	struct skep_trace_report report = read_events(log_text, &plain, true, &record);
	assert_string_equal(record.text,
		"0+i-1(v100,us-east-1b) 1.5?(k80,) 3?slot2 4+slot3(,z) 86402-i-1(v100,us-east-1b) 86413+i-1(k80,z) "
		"86414-i-1(k80,z) 86474.");
	assert_int_equal(report.format, SKEP_TRACE_LOG);
	assert_int_equal(report.refused, 2);
	assert_int_equal(report.idle, 4);
	struct skep_trace_options per_gpu = {.per_gpu = true};
	report = read_events(log_text, &per_gpu, false, &record);
	assert_true(report.joins == 10 && report.leaves == 9 && report.most == 9 && report.refused == 2);
	assert_non_null(strstr(record.text, "86402-i-1/0 86402-i-1/1"));
}

static void gaps_in_every_shape(void **state)
{
	(void)state;
	/* in one instant leaves come before joins */
	expect("# gap: 10 min\na,1001\nb,0110\n", &plain, false, "0+a 600-a 600+b 1800-b 1800+a 2400.");
	expect("# gap: 600 s\n1,0,0,1\n0,1,1,0\n", &plain, false, "0+m0 600-m0 600+m1 1800-m1 1800+m0 2400.");
	struct skep_trace_options o = {.gap_ns = 1000000000};
	expect("0 1\t1 0", &o, false, "1+m0 3-m0 4.");
	expect("x,1,1\r\n", &o, false, "0+x 2.");
	expect("1,0\n", &o, false, "0+m0 1-m0 2.");
	expect("{\"metadata\": {\"region\": \"x\", \"gap_seconds\": 300, \"device\": \"V100\"}, \"data\": [0, "
	       "1,1,0]}\n",
		&plain, false, "300+m0 900-m0 1200.");
	expect("{\n \"data\": [1,\n0,\n1\n],\n\"metadata\": {\"gap_seconds\": 0.5}\n}\n", &plain, false,
		"0+m0 0.5-m0 1+m0 1.5.");
	expect("{\"metadata\": {\"gap_seconds\": 300}, \"data\": [0, 3, 1, 1, 12,0 ]}\n", &plain, false,
		"300+m0 300+m1 300+m2 600-m1 600-m2 1200+m1 1200+m2 1200+m3 1200+m4 1200+m5 1200+m6 1200+m7 1200+m8 1200+m9 "
		"1200+m10 1200+m11 1500-m0 1500-m1 1500-m2 1500-m3 1500-m4 1500-m5 1500-m6 1500-m7 1500-m8 1500-m9 1500-m10 "
		"1500-m11 1800.");
}

static const char task_columns[] = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
				   "deletion_time,scheduled_time\n";

static void tasks_hold_machines(void **state)
{
	(void)state;
	char text[2048];
	snprintf(text, sizeof text, "%s%s", task_columns,
		"a,1,1,1,1000,,LS,Running,0,50,20\n"           /* scheduled late: after b */
		"b,1,1,2,1000,V100M16|T4,BE,Failed,10,20,10\n" /* leaves when a joins: leaves first */
		"c,1,1,0,0,,LS,Running,12,40,12\n"             /* no GPU */
		"d,1,1,1,500,,LS,Pending,15,60,\n"             /* never ran */
		"e,1,1,1,500,,LS,Running,30,30,30\n"           /* no time at all */
		"f,1,1,1,500,T4,LS,Running,31,50,31\n");       /* until the collection ended */
	struct record record;
	struct skep_trace_report report = read_events(text, &plain, true, &record);
	assert_string_equal(record.text, "10+b(v100-16,) 15?d 20-b(v100-16,) 20+a 31+f(t4,) 50.");
	assert_true(report.live == 2 && report.idle == 2 && report.format == SKEP_TRACE_TASKS);
	expect(text, &(struct skep_trace_options){.per_gpu = true}, false,
		"10+b/0 10+b/1 15?d 20-b/0 20-b/1 20+a/0 31+f/0 50.");
}

static void task_types_are_drawn_by_what_there_is(void **state)
{
	(void)state;
	size_t size = 1 << 20, length = 0;
	char *text = malloc(size);
	assert_non_null(text);
	put("nodes", "sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,6,T4\nn1,1,1,2,V100M16\nn2,1,1,0,\n");
	length += (size_t)snprintf(text, size, "%s", task_columns);
	for (int i = 0; i < 4000; i++)
		length += (size_t)snprintf(
			text + length, size - length, "t%d,1,1,1,1000,,LS,Running,%d,%d,%d\n", i, i, i + 1, i);
	put("tasks", text);
	struct skep_trace_options o = {.nodes_path = in_folder("nodes"), .seed = 5};
	struct record *record = calloc(1, sizeof *record);
	struct skep_diag diag = {0};
	record->types = true;
	assert_true(skep_trace_read(in_folder("tasks"), &o, note, record, NULL, &diag));
	uint32_t t4 = 0, v100 = 0;
	for (const char *at = record->text; (at = strchr(at, '+')); at++) {
		const char *type = strchr(at, '(');
		t4 += type && strncmp(type, "(t4,", 4) == 0;
		v100 += type && strncmp(type, "(v100-16,", 9) == 0;
	}
	assert_true(t4 + v100 > 200);
	double share = (double)t4 / (t4 + v100);
	assert_true(fabs(share - 0.75) < 4 * sqrt(0.75 * 0.25 / (t4 + v100)));
	free(record);
	free(text);
}

static void nodes_join_and_stay(void **state)
{
	(void)state;
	static const char text[] = "sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,2,P100\nn1,1,1,1,T4\nn2,1,1,0,\n";
	expect(text, &plain, true, "0+n0(p100,) 0+n1(t4,) 0.");
	expect(text, &(struct skep_trace_options){.per_gpu = true}, false, "0+n0/0 0+n0/1 0+n1/0 0.");
}

/* ---- many ------------------------------------------------------------------------------------------------------------- */

/* Random joins and leaves against a plain table: the reader's books agree at every event. */
struct mirror {
	bool alive[300];
	uint32_t slot[300], count;
	bool slot_used[300];
};

static bool compare(void *user, const struct skep_trace_event *event)
{
	struct mirror *m = user;
	if (event->kind == SKEP_TRACE_END)
		return true;
	uint32_t name = (uint32_t)atoi(event->name + 1);
	bool join = event->kind == SKEP_TRACE_JOIN;
	assert_true(m->alive[name] != join && event->slot < 300 && m->slot_used[event->slot] != join);
	if (!join)
		assert_int_equal(m->slot[name], event->slot);
	m->alive[name] = m->slot_used[event->slot] = join;
	m->slot[name] = event->slot;
	m->count = join ? m->count + 1 : m->count - 1;
	return true;
}

static void the_books_hold_under_many_moves(void **state)
{
	(void)state;
	bool alive[300] = {false};
	uint64_t random = 7;
	uint32_t count = 0, most = 0;
	FILE *file = fopen(in_folder("many"), "w");
	assert_non_null(file);
	for (uint32_t i = 0; i < 200000; i++) {
		uint32_t name = skep_random_below(&random, 300);
		alive[name] = !alive[name];
		count = alive[name] ? count + 1 : count - 1;
		most = count > most ? count : most;
		fprintf(file, "%u,%s,n%u\n", i, alive[name] ? "join" : "leave", name);
	}
	fclose(file);
	struct mirror mirror = {.count = 0};
	struct skep_trace_report report;
	struct skep_diag diag = {0};
	assert_true(skep_trace_read(in_folder("many"), &plain, compare, &mirror, &report, &diag));
	assert_memory_equal(alive, mirror.alive, sizeof alive);
	assert_true(report.live == count && report.most == most && report.lines == 200000);
}

#if !defined(__SANITIZE_ADDRESS__) && defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

static bool ignore(void *user, const struct skep_trace_event *event)
{
	(void)user;
	(void)event;
	return true;
}

static void a_large_file_is_streamed(void **state)
{
	(void)state;
	FILE *file = fopen(in_folder("large"), "w");
	assert_non_null(file);
	for (uint32_t i = 0; i < 1000000; i++)
		fprintf(file, "%u,join,a-name-that-is-long-enough-%u\n%u,leave,a-name-that-is-long-enough-%u\n", i, i,
			i + 1, i);
	fclose(file);
	struct rusage before, after;
	struct skep_trace_report report;
	struct skep_diag diag = {0};
	getrusage(RUSAGE_SELF, &before);
	assert_true(skep_trace_read(in_folder("large"), &plain, ignore, NULL, &report, &diag) && !diag.set);
	getrusage(RUSAGE_SELF, &after);
	assert_true(report.bytes > 80000000 && report.lines == 2000000);
#ifndef __SANITIZE_ADDRESS__
	assert_true(after.ru_maxrss - before.ru_maxrss < 4096); /* KiB */
#endif
	unlink(in_folder("large"));
}

static bool stop_at_second(void *user, const struct skep_trace_event *event)
{
	(void)event;
	return ++*(int *)user < 2;
}

static void a_sink_can_stop_the_reading(void **state)
{
	(void)state;
	int events = 0;
	struct skep_diag diag = {0};
	put("trace", "0,join,a\n1,leave,a\n2,join,a\n");
	assert_false(skep_trace_read(in_folder("trace"), &plain, stop_at_second, &events, NULL, &diag));
	assert_int_equal(events, 2);
	assert_true(diag.set);
}

/* ---- writing ----------------------------------------------------------------------------------------------------------- */

static void what_is_written_reads_back(void **state)
{
	(void)state;
	struct record first, second;
	struct skep_diag diag = {0};
	put("trace", log_text);
	memset(&first, 0, sizeof first);
	memset(&second, 0, sizeof second);
	first.types = second.types = true;
	assert_true(skep_trace_read(in_folder("trace"), &plain, note, &first, NULL, &diag));
	struct skep_trace_writer *w = skep_trace_writer_create(in_folder("written"), "two\nlines", "MIT", &diag);
	assert_non_null(w);
	assert_true(skep_trace_read(in_folder("trace"), &plain, skep_trace_write, w, NULL, &diag));
	assert_int_not_equal(access(in_folder("written"), F_OK), 0); /* not before it is complete */
	assert_true(skep_trace_writer_close(w));
	assert_true(skep_trace_read(in_folder("written"), &plain, note, &second, NULL, &diag));
	assert_string_equal(first.text, second.text);
	assert_int_equal(glob(in_folder("written.*"), 0, NULL, &(glob_t){0}), GLOB_NOMATCH); /* nothing is left over */
	w = skep_trace_writer_create(in_folder("none/at-all"), "", "", &diag);
	assert_null(w);
	assert_non_null(strstr(diag.message, "cannot be written"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_format),
		cmocka_unit_test(named_events_with_mark_and_carriage_returns),
		cmocka_unit_test(counts_name_their_victims_by_rule),
		cmocka_unit_test(random_victims_follow_the_seed),
		cmocka_unit_test(zone_victims_empty_one_zone_first),
		cmocka_unit_test(availability_log),
		cmocka_unit_test(gaps_in_every_shape),
		cmocka_unit_test(tasks_hold_machines),
		cmocka_unit_test(task_types_are_drawn_by_what_there_is),
		cmocka_unit_test(nodes_join_and_stay),
		cmocka_unit_test(the_books_hold_under_many_moves),
		cmocka_unit_test(a_large_file_is_streamed),
		cmocka_unit_test(a_sink_can_stop_the_reading),
		cmocka_unit_test(what_is_written_reads_back),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

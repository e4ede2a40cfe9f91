/* SPDX-License-Identifier: Apache-2.0
 *
 * leading.c - see group.h. Before the server is started all that was agreed on has been applied (a barrier), and the newest
 * version that all stages have is on this machine, or no replica of a majority has it any more.
 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/process/signals.h"
#include "exec/replicas/group.h"

struct proposal {
	struct raft_apply request;
	struct group *group;
	struct skep_kept_entry entry;
};

static void tell_server(struct group *group, const struct skep_lease_message *message)
{
	if (group->lease >= 0)
		send(group->lease, message, sizeof *message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- agreeing -------------------------------------------------------------------------------------------------------- */

static void on_agreed(struct raft_apply *request, int status, void *result)
{
	struct proposal *proposal = request->data;
	const struct skep_kept_entry *entry = &proposal->entry;
	struct group *group = proposal->group;
	(void)result;
	assert(entry->kind > 0 && entry->kind < SKEP_KEPT_KINDS);
	if (status == 0 && entry->kind == SKEP_KEPT_BEGIN)
		tell_server(group, &(struct skep_lease_message){.kind = SKEP_LEASE_BEGUN, .run = entry->run});
	else if (status == 0 && entry->kind == SKEP_KEPT_STATE)
		tell_server(group, &(struct skep_lease_message){
					   .kind = SKEP_LEASE_KEPT, .stage = entry->stage, .version = entry->version});
	free(proposal);
}

/* Who does not lead any more proposes nothing, and finds so on its next turn. */
static void propose(struct group *group, const struct skep_kept_entry *entry)
{
	assert(entry->kind > 0 && entry->kind < SKEP_KEPT_KINDS);
	struct proposal *proposal = malloc(sizeof *proposal);
	struct raft_buffer buffer = {.base = raft_malloc(SKEP_KEPT_ENTRY_BYTES)};
	if (proposal == NULL || buffer.base == NULL) {
		raft_free(buffer.base);
		free(proposal);
		skep_group_fail(group, 1, "no memory for an entry");
		return;
	}
	*proposal = (struct proposal){.group = group, .entry = *entry};
	proposal->request.data = proposal;
	skep_kept_encode(entry, buffer.base);
	buffer.len = SKEP_KEPT_ENTRY_BYTES;
	if (raft_apply(&group->raft, &proposal->request, &buffer, 1, on_agreed) != 0) {
		raft_free(buffer.base);
		free(proposal);
	}
}

/* ---- what the server has ----------------------------------------------------------------------------------------------- */

static void agree_on(struct group *group, struct offer *offer)
{
	assert((offer->has & 1u << group->setup->own) != 0);
	if (offer->proposed || (uint32_t)__builtin_popcount(offer->has) < group_majority(group))
		return;
	offer->proposed = true;
	propose(group, &(struct skep_kept_entry){.kind = SKEP_KEPT_STATE,
			       .stage = offer->stage,
			       .version = offer->version,
			       .bytes = offer->bytes});
}

static void forget(struct group *group, size_t at)
{
	assert(at < group->offers);
	memmove(&group->offer[at], &group->offer[at + 1], (--group->offers - at) * sizeof *group->offer);
}

/* Of each stage as many are offered as the disk keeps, with the one that comes: the file of an older one is gone. */
static void forget_old(struct group *group, uint32_t stage)
{
	size_t newer = 0;
	for (size_t i = group->offers; i-- > 0;) {
		if (group->offer[i].stage == stage && ++newer >= SKEP_KEPT_VERSIONS)
			forget(group, i);
	}
}

static void offer(struct group *group, uint32_t stage, uint32_t version, uint64_t bytes, bool proposed)
{
	forget_old(group, stage);
	if (!skep_grow(&group->offer, group->offers, sizeof *group->offer)) {
		skep_group_fail(group, 1, "no memory for states");
		return;
	}
	group->offer[group->offers++] = (struct offer){.stage = stage,
		.version = version,
		.bytes = bytes,
		.has = 1u << group->setup->own,
		.proposed = proposed};
}

static void on_keeps(struct group *group, const struct skep_lease_message *message)
{
	if (message->stage >= group->kept.stages)
		return;
	if (skep_kept_find(&group->kept, message->stage, message->version) != NULL) {
		tell_server(
			group, &(struct skep_lease_message){
				       .kind = SKEP_LEASE_KEPT, .stage = message->stage, .version = message->version});
		return;
	}
	for (size_t i = 0; i < group->offers; i++) {
		if (group->offer[i].stage == message->stage && group->offer[i].version == message->version)
			return;
	}
	offer(group, message->stage, message->version, message->bytes, false);
}

void skep_leading_has(struct group *group, uint32_t peer, const struct skep_state_word *word)
{
	assert(peer > 0 && peer <= group->count && peer != group->setup->own);
	for (size_t i = 0; i < group->offers; i++) {
		struct offer *one = &group->offer[i];
		if (one->stage != word->stage || one->version != word->version)
			continue;
		one->has |= 1u << peer;
		agree_on(group, one);
		if ((uint32_t)__builtin_popcount(one->has) == group->count)
			forget(group, i);
		return;
	}
}

void skep_leading_lacks(struct group *group, const struct skep_state_word *word)
{
	for (size_t i = 0; i < group->offers; i++) {
		if (group->offer[i].stage != word->stage || group->offer[i].version != word->version)
			continue;
		if (!group->offer[i]
				.proposed) /* newer ones of its part have taken its place: the server need not wait for it */
			tell_server(group,
				&(struct skep_lease_message){
					.kind = SKEP_LEASE_KEPT, .stage = word->stage, .version = word->version});
		forget(group, i);
		return;
	}
}

/* ---- the server -------------------------------------------------------------------------------------------------------- */

static void hang_up(struct group *group)
{
	if (group->lease >= 0)
		close(group->lease);
	group->lease = -1;
	group->server = 0;
	group->offers = 0;
}

void skep_leading_stop(struct group *group)
{
	int status;
	if (group->server > 0) {
		kill(group->server, SIGKILL);
		while (waitpid(group->server, &status, 0) < 0 && errno == EINTR)
			;
	}
	hang_up(group);
}

static void __attribute__((noreturn)) serve(struct group *group, int lease, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(SKEP_LEASE_LOST);
	skep_quit_restore(group->before);
	close_range(3, (unsigned)lease - 1, 0);
	close_range((unsigned)lease + 1, ~0u, 0);
	int status = group->setup->serve(group->setup->context, lease, group->kept.run);
	fflush(NULL);
	_exit(status);
}

static void start(struct group *group)
{
	int pair[2];
	assert(group->leads && group->caught_up && group->server == 0 && group->lease < 0);
	uint32_t newest = skep_kept_newest(&group->kept);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		skep_group_fail(group, 1, "no socket for a server: %s", strerror(errno));
		return;
	}
	if (!group->setup->quiet)
		fprintf(stderr, "skep: replica %u of %u leads, and serves\n", group->setup->own, group->count);
	fflush(NULL);
	pid_t parent = getpid();
	group->server = fork();
	if (group->server == 0)
		serve(group, pair[1], parent);
	close(pair[1]);
	group->lease = pair[0];
	if (group->server < 0) {
		hang_up(group);
		skep_group_fail(group, 1, "no process for a server: %s", strerror(errno));
		return;
	}
	for (uint32_t stage = 0; newest > 0 && stage < group->kept.stages; stage++)
		offer(group, stage, newest, skep_kept_find(&group->kept, stage, newest)->bytes, true);
}

static void hear_server(struct group *group)
{
	struct skep_lease_message message;
	while (recv(group->lease, &message, sizeof message, MSG_DONTWAIT) == (ssize_t)sizeof message) {
		if (message.kind == SKEP_LEASE_BEGINS)
			propose(group, &(struct skep_kept_entry){.kind = SKEP_KEPT_BEGIN,
					       .job = group->setup->states.job,
					       .run = message.run,
					       .from = message.from,
					       .from_version = message.from_version});
		else if (message.kind == SKEP_LEASE_KEEPS)
			on_keeps(group, &message);
	}
}

static void reap(struct group *group)
{
	int status = 0;
	assert(group->server > 0 && group->leads);
	if (waitpid(group->server, &status, WNOHANG) != group->server)
		return;
	hear_server(group);
	hang_up(group);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		group->over = true;
		propose(group, &(struct skep_kept_entry){.kind = SKEP_KEPT_OVER});
	} else if (WIFEXITED(status) && WEXITSTATUS(status) != SKEP_LEASE_LOST) {
		skep_group_fail(group, WEXITSTATUS(status),
			"its server has failed, so that this replica ends, and the others choose another one");
	} else if (WIFSIGNALED(status)) {
		skep_group_fail(group, 1,
			"its server was ended by SIG%s, so that this replica ends, and the others choose another one",
			sigabbrev_np(WTERMSIG(status)));
	}
}

/* ---- what it goes on with ---------------------------------------------------------------------------------------------- */

void skep_leading_refused(struct group *group, uint32_t peer)
{
	assert(peer > 0 && peer <= group->count && peer != group->setup->own);
	group->refused |= 1u << peer;
}

void skep_leading_fetched(struct group *group, const struct skep_state_word *word)
{
	if (group->reads || word->version != group->read_version || word->stage != group->whole)
		return;
	assert(group->whole < group->kept.stages);
	group->whole++;
	group->damaged = false;
}

static void read_state(uv_work_t *work)
{
	struct group *group = work->data;
	assert(group->read_version > 0);
	group->is_whole = skep_checkpoint_is_whole(group->read_path);
}

static void on_read(uv_work_t *work, int status)
{
	struct group *group = work->data;
	(void)status; /* it is never cancelled */
	assert(group->reads && !group->damaged);
	group->reads = false;
	group->damaged = !group->is_whole;
	group->whole += group->is_whole;
	if (group->damaged)
		fprintf(stderr, "skep: replica %u of %u: %s is damaged, and is fetched from another one\n",
			group->setup->own, group->count, group->read_path);
}

/* In another thread: the loop would not be heard for longer than an election takes, if the state is large. */
static void begin_reading(struct group *group, uint32_t stage, uint32_t version)
{
	assert(!group->reads && stage == group->whole && version == group->read_version);
	skep_checkpoint_path(&group->states, stage, version, group->read_path);
	group->read.data = group;
	group->reads = uv_queue_work(&group->loop, &group->read, read_state, on_read) == 0;
}

/* The first stage whose state of this version is not here, or damaged; `stages`: none, so far as has been read. */
static uint32_t find_missed(struct group *group, uint32_t version)
{
	if (version != group->read_version) {
		group->read_version = version;
		group->whole = 0;
		group->damaged = false;
	}
	for (uint32_t stage = 0; version > 0 && stage < group->kept.stages; stage++) {
		const struct skep_kept_state *state = skep_kept_find(&group->kept, stage, version);
		if (!skep_transfers_has(group, stage, version, state->bytes) ||
			(stage == group->whole && group->damaged))
			return stage;
		if (stage == group->whole) {
			begin_reading(group, stage, version);
			break;
		}
	}
	return group->kept.stages;
}

/* Is there nothing to fetch any more? */
static bool has_newest(struct group *group)
{
	if (group->reads)
		return false;
	uint32_t missed = find_missed(group, skep_kept_newest(&group->kept));
	assert(missed <= group->kept.stages);
	if (missed != group->missed)
		group->refused = 0;
	group->missed = missed;
	if (missed == group->kept.stages)
		return !group->reads;
	uint32_t heard = skep_links_heard(group);
	return (heard & ~group->refused) == 0 &&
	       (uint32_t)__builtin_popcount(heard & group->refused) + 1 >= group_majority(group);
}

static void on_barrier(struct raft_barrier *request, int status)
{
	struct group *group = request->data;
	group->catches_up = false;
	group->caught_up = status == 0 && group->leads;
}

void skep_leading_turn(struct group *group, uint64_t now_ns)
{
	bool leads = raft_state(&group->raft) == RAFT_LEADER;
	if (!leads && group->leads) {
		if (group->server > 0)
			fprintf(stderr, "skep: replica %u of %u leads no longer: its server ends\n", group->setup->own,
				group->count);
		skep_leading_stop(group);
		group->caught_up = group->over = false;
		group->missed = group->kept.stages; /* the table may be another one when it leads again */
	}
	group->leads = leads;
	if (!leads || group->kept.over)
		return;
	if (!group->caught_up && !group->catches_up) {
		group->barrier.data = group;
		group->catches_up = raft_barrier(&group->raft, &group->barrier, on_barrier) == 0;
	}
	if (!group->caught_up || group->over)
		return;
	if (group->server > 0) {
		tell_server(group, &(struct skep_lease_message){
					   .kind = SKEP_LEASE_RENEWED, .until_ns = now_ns + group->setup->election_ns});
		hear_server(group);
		reap(group);
	} else if (has_newest(group)) {
		start(group);
	}
}

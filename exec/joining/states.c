/* SPDX-License-Identifier: Apache-2.0
 *
 * states.c - see states.h. Runs on the thread of the device that waits for the state.
 */
#include "exec/joining/states.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/outputs.h"
#include "exec/joining/join_internal.h"

/* Says what there is, or what is asked for, and hears the answer. NULL: reterr says why there is none. */
static struct skep_joining *ask(struct skep_states *states, struct skep_state_word *word, struct skep_diag *reterr)
{
	struct skep_ticket ticket;
	union skep_words words = {0};
	struct skep_joining *j = skep_joining_create(states->options);
	if (j == NULL) {
		skep_fail(reterr, "no memory for a connection");
		return NULL;
	}
	bool fine =
		skep_ticket_parse(states->options->ticket, &ticket, reterr) && skep_joining_connect(j, &ticket, reterr);
	if (fine) {
		memcpy(word->secret, ticket.secret, sizeof word->secret);
		words.state = *word;
		skep_joining_say(j, SKEP_RECORD_STATE, &words);
		fine = skep_joining_answer(j, SKEP_RECORD_STATE, &words, reterr);
	}
	if (!fine) {
		states->lost = !j->for_good;
		skep_joining_finish(j);
		return NULL;
	}
	word->bytes = words.state.bytes;
	return j;
}

/* ---- to `serve` ------------------------------------------------------------------------------------------------------ */

static bool send_pieces(struct skep_joining *j, FILE *file, uint64_t bytes, struct skep_diag *reterr)
{
	uint8_t piece[SKEP_PIECE_BYTES];
	union skep_words words = {0};
	for (uint64_t at = 0; at < bytes; at += words.piece.count) {
		size_t count = bytes - at < sizeof piece ? (size_t)(bytes - at) : sizeof piece;
		if (fread(piece, 1, count, file) != count)
			return skep_fail(reterr, "its file has become shorter");
		words.piece = (struct skep_piece){.offset = at, .bytes = piece, .count = (uint32_t)count};
		skep_joining_say(j, SKEP_RECORD_PIECE, &words);
		if (j->channel.state != SKEP_CHANNEL_OPEN)
			break; /* the answer says why */
	}
	return skep_joining_answer(j, SKEP_RECORD_STATE, &words, reterr);
}

static bool hand_over(
	struct skep_states *states, uint32_t stage, uint32_t version, bool presumed, struct skep_diag *reterr)
{
	char path[SKEP_CHECKPOINT_PATH_BYTES];
	struct stat about;
	struct skep_state_word word = {.keep = true, .presumed = presumed, .stage = stage, .version = version};
	skep_checkpoint_path(&states->folder, stage, version, path);
	FILE *file = fopen(path, "rb");
	if (file == NULL || fstat(fileno(file), &about) != 0) {
		if (file != NULL)
			fclose(file);
		return skep_fail(reterr, "%s cannot be read", path);
	}
	uint64_t bytes = word.bytes = (uint64_t)about.st_size;
	struct skep_joining *j = ask(states, &word, reterr);
	bool fine = j != NULL && (word.bytes == 0 || send_pieces(j, file, bytes, reterr));
	skep_joining_finish(j);
	fclose(file);
	return fine;
}

/* What the worker holds, and what it presumes that the next step makes (core/worker/orphan.c), of which a worker that began with
 * what all have has the second alone.
 *
 * Where the folder is also that of `serve`, the newest version that all stages have must not make room for one of this stage
 * alone: nothing is removed. */
static bool keep_here(struct skep_states *states, uint32_t stage, uint32_t version, bool presumed, const void *state,
	uint64_t bytes, struct skep_diag *reterr)
{
	assert(states->orphaned && states->left != NULL && version > 0);
	struct skep_checkpoint_folder all = states->folder;
	all.keep = 0;
	const struct skep_keeper own = skep_checkpoint_keeper(&all);
	if (!own.write(own.context, stage, version, presumed, state, bytes, reterr))
		return false;
	struct skep_left *left = states->left;
	const struct skep_left before = *left;
	assert(!presumed || before.version == 0 || (before.stage == stage && before.version < version));
	*left = (struct skep_left){.job = all.job, .run = all.run, .stage = stage};
	left->version = presumed ? before.version : version;
	left->presumed = presumed ? version : 0;
	snprintf(left->folder, sizeof left->folder, "%s", all.path);
	if (!states->options->quiet)
		fprintf(stderr, "skep: the state of stage %u as of round %u is kept in %s%s\n", stage, version,
			all.path, presumed ? ": other stages may have made that step" : "");
	return true;
}

void skep_states_orphaned(void *context)
{
	struct skep_states *states = context;
	assert(states->left != NULL);
	states->orphaned = true;
}

static bool write_both(void *context, uint32_t stage, uint32_t version, bool presumed, const void *state,
	uint64_t bytes, struct skep_diag *reterr)
{
	struct skep_states *states = context;
	const struct skep_keeper own = skep_checkpoint_keeper(&states->folder);
	struct skep_diag why = {0};
	if (states->orphaned)
		return keep_here(states, stage, version, presumed, state, bytes, reterr);
	if (!own.write(own.context, stage, version, presumed, state, bytes, reterr))
		return false;
	return hand_over(states, stage, version, false, &why) ||
	       skep_fail(reterr, "`serve` does not keep the state of stage %u: %s", stage, why.message);
}

void skep_left_bring(const struct skep_join_options *options, uint64_t run)
{
	const struct skep_left *left = options->left;
	struct skep_diag why = {0};
	if (left == NULL || left->run != run)
		return;
	struct skep_states states = {
		.folder = {.path = left->folder, .job = left->job, .run = left->run}, .options = options};
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t version = i == 0 ? left->version : left->presumed;
		why = (struct skep_diag){0};
		if (version > 0 && !hand_over(&states, left->stage, version, i > 0, &why))
			fprintf(stderr, "skep: the state of stage %u as of round %u is not taken: %s\n", left->stage,
				version, why.message);
	}
}

/* ---- from `serve` ---------------------------------------------------------------------------------------------------- */

/* False: the connection was lost. All else that may be wrong is in reterr, or is found by the file's end. */
static bool receive_pieces(struct skep_joining *j, FILE *file, uint64_t bytes, struct skep_diag *reterr)
{
	union skep_words words;
	for (uint64_t at = 0; at < bytes; at += words.piece.count) {
		if (!skep_joining_answer(j, SKEP_RECORD_PIECE, &words, reterr))
			return j->for_good;
		if (words.piece.offset != at || words.piece.count > bytes - at)
			return !skep_fail(reterr, "it sends other bytes than were asked for");
		if (fwrite(words.piece.bytes, 1, words.piece.count, file) != words.piece.count)
			return true;
	}
	return true;
}

/* Into the folder; whether it is right, its reader says. */
static bool fetch(struct skep_states *states, uint32_t stage, uint32_t version, struct skep_diag *reterr)
{
	char path[SKEP_CHECKPOINT_PATH_BYTES];
	struct skep_outputs outputs = {.diag = reterr};
	struct skep_state_word word = {.stage = stage, .version = version};
	struct skep_joining *j = ask(states, &word, reterr);
	if (j == NULL)
		return false;
	skep_checkpoint_path(&states->folder, stage, version, path);
	FILE *file = skep_outputs_begin(&outputs, path);
	if (file != NULL)
		states->lost = !receive_pieces(j, file, word.bytes, reterr);
	skep_joining_finish(j);
	return skep_outputs_commit(&outputs);
}

static bool read_either(
	void *context, uint32_t stage, uint32_t version, void *ret_state, uint64_t bytes, struct skep_diag *reterr)
{
	struct skep_states *states = context;
	const struct skep_keeper own = skep_checkpoint_keeper(&states->folder);
	struct skep_diag why = {0};
	if (own.read(own.context, stage, version, ret_state, bytes, &why))
		return true;
	why = (struct skep_diag){0};
	if (!fetch(states, stage, version, &why))
		return skep_fail(reterr, "version %u of stage %u is not kept here, and cannot be fetched: %s", version,
			stage, why.message);
	return own.read(own.context, stage, version, ret_state, bytes, reterr);
}

struct skep_keeper skep_states_keeper(struct skep_states *states)
{
	return (struct skep_keeper){states, write_both, read_either};
}

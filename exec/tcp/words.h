/* SPDX-License-Identifier: Apache-2.0
 *
 * words.h - what `serve` and a process that joins say to each other before it has a rank, and what `serve` says of members.
 *
 * In this order, on the connection that a guest has made to `serve`:
 *
 *     guest  HELLO    the secret of its ticket, the version of its program, what its machine is
 *     serve  OFFER    the run: its settings, and its list of files by hash; or REFUSED, with the reason
 *     guest  FETCH    of a file that it lacks, from where it left off       (as often as needed)
 *     serve  PIECE    of that file, up to its end
 *     guest  READY    its public key, once it has read the scenario
 *     serve  ADMITTED     its rank, its worker and its certificate
 *     guest  PREPARED   once its device is there; or why it is not
 *     serve  MEMBER   for each process that is there, then GO with the time of the run's clock
 *
 * Who only asks how the run is (`asks` in HELLO) is told STATUS, the bytes of a JSON object, and then these in pieces.
 *
 * Where the run has reached its end already, OVER, with nothing in it, answers HELLO.
 *
 * Where a run that was lost is taken up again, and rounds were made behind the newest states that `serve` has, GATHERS answers
 * HELLO and names that run. The guest hands over the state that it has of it, as below, and says GATHERS itself. When `serve` has
 * heard from as many as it waits for it says GATHERS once more and closes: the guest begins anew with HELLO. Or it says OVER.
 *
 * Who has kept a state says STATE, and so does who lacks one (`keep` in it), on a connection of its own. `serve` answers with
 * STATE and the bytes that it wants or has, which come in pieces; of what it has received it says STATE once more when that is
 * on its disk.
 *
 * From then on the connection is that of rank 0 and the new rank, and carries frames. Everything is little endian and written
 * field by field by the cursor of wire.h: a reader takes what a writer could have written, and nothing else.
 */
#pragma once

#include "exec/tcp/channel.h"
#include "exec/transport/wire.h"

#define SKEP_PROTOCOL 8u
#define SKEP_NAME_MAX 64u
#define SKEP_REASON_MAX 512u
#define SKEP_PIECE_BYTES 16000u
#define SKEP_HASH_BYTES 32u /* SHA-256 */

struct skep_hello {
	uint16_t protocol;
	char version[SKEP_NAME_MAX];
	uint8_t secret[SKEP_SECRET_BYTES];
	bool asks; /* for the state of the run alone (skep status) */
	char host[SKEP_NAME_MAX];
	char gpu[SKEP_NAME_MAX]; /* the name of a profile; "": it was not said */
	uint64_t memory_bytes;   /* of the device; 0: not known */
	uint32_t cores;
	uint16_t port;   /* on which it listens; 0: on none */
	uint32_t worker; /* the place that it asks for; SKEP_NO_INDEX: any */
};

struct skep_refused {
	bool for_good; /* trying again is of no use */
	char reason[SKEP_REASON_MAX];
};

struct skep_offer {
	uint64_t run; /* its name on the wire, and in certificates */
	uint64_t seed;
	bool seeded; /* `seed` stands for the scenario's */
	bool pace;
	uint8_t device;       /* enum skep_device_kind */
	uint64_t silence_ns;  /* a member that is not heard for so long is gone */
	uint64_t kept_as;     /* the run's number in folders of checkpoints; 0: it has none */
	uint64_t kept_from;   /* first_round > 0: that of the run that this one goes on with, ... */
	uint32_t first_round; /* ... from that round on; 0: it begins by itself */
	/* Fetched first: the list of files, and the allocation that `serve` has found; 0 bytes: none was searched for. */
	uint64_t list_bytes, allocation_bytes;
	uint8_t list[SKEP_HASH_BYTES], allocation[SKEP_HASH_BYTES];
};

struct skep_fetch {
	uint8_t hash[SKEP_HASH_BYTES];
	uint64_t offset;
};

struct skep_piece { /* of what was asked for last */
	uint64_t offset;
	const uint8_t *bytes; /* inside the record */
	uint32_t count;
};

struct skep_state_word {                   /* a state that was kept (checkpoint.h): a file */
	uint8_t secret[SKEP_SECRET_BYTES]; /* of a ticket; from `serve`: not looked at */
	bool keep;                         /* the guest has it for `serve` to keep; else it asks for it */
	bool presumed;                     /* it has, and does not know whether the run has come to it */
	uint32_t stage, version;
	uint64_t bytes; /* of the file; from `serve` of what is to come, 0: nothing (more) */
};

struct skep_source { /* between replicas: a file or an override that the sender has read */
	uint32_t of; /* how many there are */
	uint64_t bytes;
	char name[SKEP_NAME_MAX]; /* without its folder */
	uint8_t digest[SKEP_HASH_BYTES];
};

struct skep_blob { /* a certificate or a key */
	uint16_t count;
	uint8_t byte[SKEP_CERTIFICATE_MAX];
};

struct skep_admitted {
	uint32_t rank, ranks;
	uint32_t worker; /* SKEP_NO_INDEX: none yet, it stands by */
	struct skep_blob certificate, authority;
};

struct skep_prepared {
	bool fine;
	char reason[SKEP_REASON_MAX];
};

struct skep_member {
	uint32_t rank;
	uint16_t port;               /* 0: it takes no connections in */
	char address[SKEP_NAME_MAX]; /* as `serve` sees it; "": not known */
};

/* One of these, by the type of the record; DISCONNECT, GO, STATUS, PASSED and EVICTED have one field, and OVER one that is 0. */
union skep_words {
	struct skep_hello hello;
	struct skep_refused refused;
	struct skep_offer offer;
	struct skep_fetch fetch;
	struct skep_piece piece;
	struct skep_state_word state;
	uint64_t
		gathers; /* of this run states are wanted, by its number in folders of checkpoints; 0: of none (any more) */
	struct skep_source source;
	struct skep_blob ready;
	struct skep_admitted admitted;
	struct skep_prepared prepared;
	struct skep_member member;
	uint32_t disconnect; /* the rank whose connection has broken */
	uint64_t go;         /* ns since the run began */
	uint64_t status;     /* bytes that follow */
	bool over;           /* 0 */
	uint64_t passed;     /* by rank 0 for the receiver, in skep_relay_cost */
	char evicted[SKEP_REASON_MAX];
};

/* Returns the bytes written. */
size_t skep_words_encode(uint8_t type, const union skep_words *words, uint8_t ret[SKEP_RECORD_MAX]);
/* False: no writer has written these. Texts end in 0 and have no control characters, but for newlines in settings. */
bool skep_words_decode(const struct skep_record *record, union skep_words *ret);

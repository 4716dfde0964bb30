/* What generated programs and the runtime share.
 *
 * One packet thread per switch runs everything a packet meets: parse, ingress, traffic manager, egress, deparse. A
 * program is a `struct program` of functions and descriptions that the generator writes; the runtime owns packets,
 * tables, queues and sockets and never knows a field by name.
 *
 * Memory shared with the control plane follows one rule (RCU): the packet thread only reads pointers, once each, and
 * forgets them before it starts its next round; the control plane publishes with release stores and frees only what a
 * finished round can no longer see (`rcu_free`). So a table write never waits for packets, nor packets for it. */
#ifndef SWITCH_H
#define SWITCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define LOAD(p) atomic_load_explicit(&(p), memory_order_acquire)
#define PUBLISH(p, v) atomic_store_explicit(&(p), (v), memory_order_release)

enum { PROGRAM_ABI = 1 };

/* BMv2's standard_metadata.instance_type. */
enum { NORMAL, INGRESS_CLONE, EGRESS_CLONE, COALESCED, RECIRCULATED, REPLICATION, RESUBMITTED };

/* Fields of standard_metadata that the switch itself reads or writes. */
enum std_field {
    STD_INGRESS_PORT, STD_EGRESS_SPEC, STD_EGRESS_PORT, STD_INSTANCE_TYPE, STD_PACKET_LENGTH, STD_ENQ_TIMESTAMP,
    STD_ENQ_QDEPTH, STD_DEQ_TIMEDELTA, STD_DEQ_QDEPTH, STD_QID, STD_INGRESS_TIME, STD_EGRESS_TIME, STD_MCAST_GRP,
    STD_EGRESS_RID, STD_CHECKSUM_ERROR, STD_PARSER_ERROR, STD_PRIORITY, STD_FIELDS
};

/* The core library's parser errors; a program numbers them as it likes. */
enum parser_error { NO_ERROR, PACKET_TOO_SHORT, NO_MATCH, STACK_OUT_OF_BOUNDS, HEADER_TOO_SHORT, PARSER_TIMEOUT,
                    PARSER_INVALID_ARGUMENT, CORE_ERRORS };

struct sw;

struct packet {
    struct packet *next;
    struct sw *sw;
    uint8_t *data;              /* the frame; after parsing the payload; after deparsing the frame again */
    uint32_t len;
    uint32_t room;              /* bytes of buffer behind the headroom */
    uint32_t ingress_length;    /* what counters and meters count */
    uint32_t packet_length;     /* follows setValid and setInvalid, as standard_metadata.packet_length must */
    uint32_t truncate;          /* bytes kept, ~0 is all */
    uint32_t original_len;      /* the frame before parsing: resubmit and ingress clones start there again */
    uint8_t *original;
    uint64_t enqueued;          /* microseconds */
    uint16_t ingress_port, egress_port;
    uint16_t clone_session;     /* session | CLONE_REQUESTED */
    uint16_t clone_fields, resubmit_fields, recirculate_fields, digest;
    uint32_t parser_error;
    bool checksum_error, exit, resubmit, recirculate;
    uint8_t queue;
    _Alignas(16) uint8_t phv[]; /* the program's struct phv, then headroom and frame */
};
#define CLONE_REQUESTED 0x8000

/* -- descriptions the generator writes ------------------------------------------------------------------------- */

enum match { MATCH_EXACT, MATCH_LPM, MATCH_TERNARY, MATCH_RANGE };

struct key_spec { uint16_t offset, bytes, bits; uint8_t match; };

struct action_spec { uint32_t id; uint32_t params; /* bytes */ };

struct table_spec {
    const char *name;
    const struct key_spec *key;
    const uint8_t *mask;            /* static mask over the key, NULL is none */
    uint32_t fields, key_bytes, size;
    const struct action_spec *actions;
    uint32_t action_count;
    int32_t profile;                /* -1: direct */
    bool counters, priorities;
    int32_t meter;                  /* 1 bytes, 0 packets, -1 none */
};

struct profile_spec { const char *name; uint32_t size; const struct action_spec *actions; uint32_t action_count; };
struct array_spec { const char *name; uint32_t size; uint32_t cell; /* register bytes; meters: 1 counts bytes */ };
struct digest_spec { const char *name; uint32_t bytes; };
struct vset_spec { const char *name; uint32_t size, bytes; };
struct std_spec { uint32_t offset; uint8_t bytes; uint64_t mask; };   /* bytes 0: the program has no such field */

struct program {
    uint32_t abi;
    uint32_t phv_bytes, headroom;
    struct std_spec std[STD_FIELDS];
    uint32_t errors[CORE_ERRORS];
    void (*parse)(struct packet *);
    void (*ingress)(struct packet *);
    void (*egress)(struct packet *);
    void (*deparse)(struct packet *);
    void (*reset_metadata)(void *phv);
    void (*copy_fields)(int list, void *to, const void *from);
    void (*digest)(const struct packet *, int list, uint8_t *out);
    uint64_t (*select)(struct packet *, int profile);
    const struct table_spec *tables; uint32_t table_count;
    const struct profile_spec *profiles; uint32_t profile_count;
    const struct array_spec *counters; uint32_t counter_count;
    const struct array_spec *meters; uint32_t meter_count;
    const struct array_spec *registers; uint32_t register_count;
    const struct digest_spec *digests; uint32_t digest_count;
    const struct vset_spec *vsets; uint32_t vset_count;
};

/* -- state that programs use ------------------------------------------------------------------------------------- */

struct counter { uint64_t packets, bytes; };

struct meter {
    atomic_bool configured;
    uint64_t cir, cburst, pir, pburst;          /* units per second, units */
    double committed, peak;                     /* tokens */
    uint64_t last;                              /* nanoseconds */
};

struct member;
struct group;

enum target_kind { TARGET_ACTION, TARGET_MEMBER, TARGET_GROUP };

/* Immutable once published; a change publishes another. */
struct target {
    uint32_t kind, action;                      /* action: the JSON's id */
    struct member *member;
    struct group *group;
    uint32_t params_len;
    uint8_t params[];
};

struct entry {
    struct target *_Atomic target;
    struct entry *_Atomic next;                 /* same masked key, less urgent */
    struct counter counter;
    struct meter meter;
    _Atomic uint64_t last_hit;                  /* nanoseconds */
    uint64_t handle, order;
    int64_t priority;
    uint8_t key[];                              /* masked value, then the control plane's bytes: see tables.c */
};

struct table;
struct vset;

struct register_array { uint32_t size, cell; uint8_t *cells; };
struct counter_array { uint32_t size; struct counter *cells; };
struct meter_array { uint32_t size; bool bytes; struct meter *cells; };

/* The state of a loaded program. */
struct state {
    const struct program *program;
    struct table **tables;
    struct profile *profiles;
    struct counter_array *counters;
    struct meter_array *meters;
    struct register_array *registers;
    struct vset *_Atomic *vsets;
    uint8_t *digest_enabled;
    void *library;
};

struct sw {
    struct state *state;
    uint64_t now;                               /* nanoseconds, read once a round */
    uint64_t started;
    uint32_t drop_port;
    uint8_t *scratch;                           /* hash inputs */
    struct runtime *rt;                         /* everything programs need not see */
};

/* -- what programs call -------------------------------------------------------------------------------------------- */

/* The best entry for a key of table_spec.key_bytes, NULL on a miss; counts and notes the hit. */
EXPORT struct entry *table_lookup(struct table *, const uint8_t *key, const struct packet *);
EXPORT const struct target *table_default(struct table *);
/* Follows members and groups to an action; NULL when there is nothing to do. */
EXPORT const struct target *resolve_target(const struct target *, struct packet *, int profile);
EXPORT int meter_mark(struct meter *, bool bytes, const struct packet *);
EXPORT bool vset_match(struct state *, int vset, const uint8_t *key, const uint8_t *mask);
EXPORT void digest_emit(struct packet *, int list);
EXPORT uint64_t random_between(uint64_t low, uint64_t high);
EXPORT void log_text(struct sw *, const char *format, ...) __attribute__((format(printf, 2, 3)));
EXPORT void log_message(struct sw *, const char *format, unsigned count, const char *const *values);
EXPORT void assertion_failed(struct sw *, const char *what);

EXPORT uint64_t hash_csum16(const uint8_t *, size_t);
EXPORT uint64_t hash_xor16(const uint8_t *, size_t);
EXPORT uint64_t hash_xor32(const uint8_t *, size_t);
EXPORT uint64_t hash_identity(const uint8_t *, size_t);
EXPORT uint64_t hash_xxh64(const uint8_t *, size_t);
EXPORT uint64_t hash_round_robin(uint64_t *counter);
/* Any CRC of 8..64 bits, table driven (the table is made on first use). */
struct crc { unsigned bits; uint64_t polynomial, initial, final; bool reflect_in, reflect_out; bool ready; uint64_t table[256]; };
EXPORT uint64_t hash_crc(struct crc *, const uint8_t *, size_t);

static inline void counter_count(struct state *s, int array, uint64_t index, const struct packet *p) {
    struct counter_array *a = &s->counters[array];
    if (index >= a->size) return;
    a->cells[index].packets++;
    a->cells[index].bytes += p->ingress_length;
}
#endif

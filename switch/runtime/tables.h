/* Tables, action profiles and value sets: the structures that tables.c, entries.c, profiles.c and state.c share. */
#ifndef TABLES_H
#define TABLES_H

#include "runtime.h"
#include "bits.h"

struct slots {
    uint32_t mask;                               /* capacity - 1 */
    struct { uint32_t hash; struct entry *_Atomic entry; } slot[];
};

struct tuple {
    struct tuple *_Atomic next;
    int64_t urgency;                             /* of its most urgent entry ever, since it was last empty */
    struct slots *_Atomic slots;
    uint32_t entries, used;                      /* used counts tombstones too */
    uint64_t mask[];                             /* table.words */
};

struct table {
    const struct table_spec *spec;
    struct runtime *rt;
    uint32_t id;
    uint32_t words;                              /* of 8 bytes in a key */
    uint32_t input_bytes;                        /* of the control plane's key */
    bool exact, ranges;
    struct tuple *_Atomic tuples;
    struct target *_Atomic fallback;             /* the default action */
    struct entry **handles;
    uint32_t *free_handles;
    uint32_t handle_capacity, free_count, count;
    uint64_t order;
};

struct member { uint32_t id, references; struct target *_Atomic target; };
struct group_members { uint32_t count; struct member *list[]; };
struct group { uint32_t id, references; struct group_members *_Atomic members; };

/* Ids to pointers, for the control plane only. */
struct map { uint32_t capacity, count; struct { uint32_t id; void *value; } *cells; };

struct profile { const struct profile_spec *spec; struct map members, groups; };

struct vset { uint32_t count, bytes; uint8_t data[]; };


static inline uint8_t *entry_input(const struct table *t, struct entry *e) { return e->key + t->words * 8; }

/* tables.c; the control lock is held. An insert returns a handle or an error. */
int64_t table_insert(struct table *, const uint8_t *key, int64_t priority, int kind, uint32_t id, const uint8_t *params,
                     uint32_t len);
struct entry *table_find(struct table *, const uint8_t *key, int64_t priority);
void table_erase(struct table *, struct entry *);

/* profiles.c: what entries point to. */
int target_new(struct table *, int kind, uint32_t id, const uint8_t *params, uint32_t len, struct target **out);
void target_release(struct table *, struct target *);

/* Control-plane calls come one at a time; each ends by freeing what no packet can see any more. */
#define CONTROL(rt) pthread_mutex_lock(&(rt)->control)
#define RELEASE(rt) (rcu_collect(rt), pthread_mutex_unlock(&(rt)->control))
#endif

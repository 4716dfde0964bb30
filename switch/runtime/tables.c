/* Match tables, action profiles and parser value sets.
 *
 * Every table is a list of *tuples* (Srinivasan's tuple space search): the entries that share a mask live in one hash
 * table over the masked key. An exact table has one tuple, an lpm table one per prefix length, a ternary table one per
 * mask in use. Tuples are kept in order of their most urgent entry, so a lookup stops as soon as nothing better can
 * come; a longer prefix is simply more urgent. Range fields take no part in the hash: the entries of one slot are a
 * chain in order of urgency and the first whose ranges contain the key wins.
 *
 * The packet thread reads without locks. Slots are open-addressed pointers; a delete leaves a tombstone; growth
 * builds a new slot array and publishes it. Old memory goes through rcu_free.
 *
 * The control plane sees keys as `dataplane.py` documents them. Inside, an entry stores value, mask and high (for
 * ranges), each key_bytes long, and then the control plane's own bytes, so that they can be given back unchanged. */
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
    uint32_t words;
    uint64_t mask[];                             /* key_words */
};

struct table {
    const struct table_spec *spec;
    struct runtime *rt;
    uint32_t id, words, key_bytes, input_bytes;
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
struct map { uint32_t capacity, count, used; struct { uint32_t id; void *value; } *cells; };

struct profile { const struct profile_spec *spec; struct map members, groups; };

struct vset { uint32_t count, bytes; uint8_t data[]; };

static struct entry TOMBSTONE;

/* -- hashing ------------------------------------------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t a, uint64_t b) {
    u128 product = (u128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint32_t hash_masked(const uint64_t *key, const uint64_t *mask, uint32_t words) {
    uint64_t h = 0x9e3779b97f4a7c15ull;
    for (uint32_t i = 0; i < words; i++) h = mix(h ^ (key[i] & mask[i]), 0xa0761d6478bd642full);
    return (uint32_t)(h ^ h >> 32);
}

static inline bool equal_masked(const uint64_t *key, const uint64_t *mask, const uint64_t *value, uint32_t words) {
    uint64_t difference = 0;
    for (uint32_t i = 0; i < words; i++) difference |= (key[i] & mask[i]) ^ value[i];
    return difference == 0;
}

/* -- entries ----------------------------------------------------------------------------------------------------------- */

static inline uint64_t *entry_value(struct entry *e) { return (uint64_t *)(void *)e->key; }
static inline uint8_t *entry_high(const struct table *t, struct entry *e) { return e->key + t->words * 8; }
static inline uint8_t *entry_input(const struct table *t, struct entry *e) {
    return e->key + t->words * 8 * (t->ranges ? 2 : 1);
}

static bool in_ranges(const struct table *t, struct entry *e, const uint8_t *key) {
    const uint8_t *low = entry_input(t, e);
    for (uint32_t i = 0; i < t->spec->fields; i++) {
        const struct key_spec *f = &t->spec->key[i];
        if (f->match == MATCH_RANGE) {
            if (memcmp(key + f->offset, low, f->bytes) < 0 || memcmp(key + f->offset, low + f->bytes, f->bytes) > 0)
                return false;
        }
        low += f->bytes + (f->match == MATCH_EXACT ? 0 : f->match == MATCH_LPM ? 2 : f->bytes);
    }
    return true;
}

static inline struct entry *tuple_find(const struct tuple *u, const uint64_t *key, uint32_t words) {
    struct slots *s = LOAD(((struct tuple *)u)->slots);
    uint32_t hash = hash_masked(key, u->mask, words);
    for (uint32_t i = hash & s->mask;; i = (i + 1) & s->mask) {
        struct entry *e = LOAD(s->slot[i].entry);
        if (e == NULL) return NULL;
        if (e != &TOMBSTONE && s->slot[i].hash == hash && equal_masked(key, u->mask, entry_value(e), words)) return e;
    }
}

static inline bool better(const struct entry *a, const struct entry *b) {
    return b == NULL || a->priority > b->priority || (a->priority == b->priority && a->order < b->order);
}

struct entry *table_lookup(struct table *t, const uint8_t *key, const struct packet *p) {
    const uint64_t *words = (const uint64_t *)(const void *)key;
    struct entry *best = NULL;
    for (struct tuple *u = LOAD(t->tuples); u; u = LOAD(u->next)) {
        if (best && u->urgency < best->priority) break;
        struct entry *e = tuple_find(u, words, t->words);
        if (t->ranges)
            while (e && !in_ranges(t, e, key)) e = LOAD(e->next);
        if (e && better(e, best)) best = e;
    }
    if (best) {
        best->counter.packets++;
        best->counter.bytes += p->ingress_length;
        atomic_store_explicit(&best->last_hit, p->sw->now, memory_order_relaxed);
    }
    return best;
}

const struct target *table_default(struct table *t) { return LOAD(t->fallback); }

const struct target *resolve_target(const struct target *target, struct packet *p, int profile) {
    if (target == NULL || target->kind == TARGET_ACTION) return target;
    if (target->kind == TARGET_MEMBER) return LOAD(target->member->target);
    struct group_members *m = LOAD(target->group->members);
    uint64_t hash = p->sw->state->program->select(p, profile);
    if (m->count == 0) return NULL;
    return LOAD(m->list[hash % m->count]->target);
}

/* -- slots and tuples --------------------------------------------------------------------------------------------------- */

static struct slots *slots_new(uint32_t capacity) {
    struct slots *s = calloc(1, sizeof *s + capacity * sizeof s->slot[0]);
    s->mask = capacity - 1;
    return s;
}

static void slots_put(struct slots *s, uint32_t hash, struct entry *e) {
    uint32_t i = hash & s->mask;
    while (LOAD(s->slot[i].entry) != NULL) i = (i + 1) & s->mask;
    s->slot[i].hash = hash;
    PUBLISH(s->slot[i].entry, e);
}

static void tuple_grow(struct table *t, struct tuple *u) {
    struct slots *old = LOAD(u->slots);
    uint32_t capacity = 16;
    while (capacity < 2 * (u->entries + 1)) capacity *= 2;
    struct slots *fresh = slots_new(capacity * 2);
    uint32_t used = 0;
    for (uint32_t i = 0; i <= old->mask; i++) {
        struct entry *e = LOAD(old->slot[i].entry);
        if (e && e != &TOMBSTONE) { slots_put(fresh, old->slot[i].hash, e); used++; }
    }
    u->used = used;
    PUBLISH(u->slots, fresh);
    rcu_free(t->rt, old);
}

/* Inserts `u` into the list so that urgencies fall. */
static void tuple_link(struct table *t, struct tuple *u) {
    struct tuple *_Atomic *at = &t->tuples;
    struct tuple *next;
    while ((next = LOAD(*at)) && next->urgency >= u->urgency) at = &next->next;
    PUBLISH(u->next, next);
    PUBLISH(*at, u);
}

static struct tuple *tuple_for(struct table *t, const uint64_t *mask, int64_t urgency) {
    struct tuple *_Atomic *at = &t->tuples;
    struct tuple *u;
    while ((u = LOAD(*at)) && memcmp(u->mask, mask, t->words * 8)) at = &u->next;
    if (u && u->urgency >= urgency) return u;
    /* A tuple that becomes more urgent moves forward as a copy, so that a reader on the old one keeps its way; the
       copy is linked first, so that no reader misses the entries. */
    struct tuple *fresh = calloc(1, sizeof *fresh + t->words * 8);
    if (u) memcpy(fresh, u, sizeof *fresh + t->words * 8);
    else { memcpy(fresh->mask, mask, t->words * 8); PUBLISH(fresh->slots, slots_new(16)); }
    fresh->urgency = urgency;
    tuple_link(t, fresh);
    if (u) {
        at = &t->tuples;
        struct tuple *each;
        while ((each = LOAD(*at)) != u) at = &each->next;
        PUBLISH(*at, LOAD(u->next));
        rcu_free(t->rt, u);
    }
    return fresh;
}

static void tuple_drop(struct table *t, struct tuple *gone) {
    struct tuple *_Atomic *at = &t->tuples;
    struct tuple *u;
    while ((u = LOAD(*at)) != gone) at = &u->next;
    PUBLISH(*at, LOAD(gone->next));
    rcu_free(t->rt, LOAD(gone->slots));
    rcu_free(t->rt, gone);
}

/* -- the control plane's keys ---------------------------------------------------------------------------------------------- */

struct parsed { uint64_t *value, *mask; int64_t priority; };

static uint8_t top_mask(const struct key_spec *f) { return f->bits % 8 ? (uint8_t)((1u << f->bits % 8) - 1) : 0xff; }

/* Control-plane bytes -> value and mask; clears what the mask does not cover, also in `input`. */
static int parse_key(const struct table *t, uint8_t *input, uint8_t *value, uint8_t *mask, int64_t *priority) {
    const struct table_spec *spec = t->spec;
    memset(value, 0, t->words * 8);
    memset(mask, 0, t->words * 8);
    for (uint32_t i = 0; i < spec->fields; i++) {
        const struct key_spec *f = &spec->key[i];
        uint8_t *v = value + f->offset, *m = mask + f->offset;
        memcpy(v, input, f->bytes);
        if (v[0] & ~top_mask(f)) return E_INVALID;
        if (f->match == MATCH_EXACT) {
            memset(m, 0xff, f->bytes);
            input += f->bytes;
        } else if (f->match == MATCH_LPM) {
            unsigned length = (unsigned)be16(input + f->bytes);
            if (length > f->bits) return E_INVALID;
            unsigned skip = f->bytes * 8 - f->bits;
            for (unsigned bit = skip; bit < skip + length; bit++) m[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
            for (uint32_t b = 0; b < f->bytes; b++) input[b] = v[b] &= m[b];
            if (!spec->priorities) *priority = length;
            input += f->bytes + 2;
        } else if (f->match == MATCH_TERNARY) {
            memcpy(m, input + f->bytes, f->bytes);
            if (m[0] & ~top_mask(f)) return E_INVALID;
            for (uint32_t b = 0; b < f->bytes; b++) input[b] = v[b] &= m[b];
            input += 2 * f->bytes;
        } else {
            if (input[f->bytes] & ~top_mask(f) || memcmp(input, input + f->bytes, f->bytes) > 0) return E_INVALID;
            memset(v, 0, f->bytes);
            input += 2 * f->bytes;
        }
    }
    if (spec->mask)
        for (uint32_t b = 0; b < spec->key_bytes; b++) { mask[b] &= spec->mask[b]; value[b] &= mask[b]; }
    if (t->exact) *priority = 0;
    return OK;
}

static struct entry *chain_find(const struct table *t, struct entry *e, const uint8_t *input, int64_t priority) {
    for (; e; e = LOAD(e->next))
        if (e->priority == priority && (!t->ranges || memcmp(entry_input(t, e), input, t->input_bytes) == 0)) return e;
    return NULL;
}

static struct tuple *tuple_with(struct table *t, const uint64_t *mask) {
    struct tuple *u = LOAD(t->tuples);
    while (u && memcmp(u->mask, mask, t->words * 8)) u = LOAD(u->next);
    return u;
}

/* -- targets ------------------------------------------------------------------------------------------------------------------ */

static bool allowed(const struct action_spec *actions, uint32_t count, uint32_t id, uint32_t params) {
    for (uint32_t i = 0; i < count; i++)
        if (actions[i].id == id) return actions[i].params == params;
    return false;
}

static uint32_t map_slot(const struct map *m, uint32_t id) {
    uint32_t i = (uint32_t)(id * 2654435761u) & (m->capacity - 1);
    while (m->cells[i].value && m->cells[i].id != id) i = (i + 1) & (m->capacity - 1);
    return i;
}
static void *map_get(const struct map *m, uint32_t id) { return m->capacity ? m->cells[map_slot(m, id)].value : NULL; }
static void map_put(struct map *m, uint32_t id, void *value) {
    if (m->capacity < 2 * (m->count + 1)) {
        struct map bigger = {.capacity = m->capacity ? m->capacity * 2 : 16};
        bigger.cells = calloc(bigger.capacity, sizeof *bigger.cells);
        for (uint32_t i = 0; i < m->capacity; i++)
            if (m->cells[i].value) map_put(&bigger, m->cells[i].id, m->cells[i].value);
        free(m->cells);
        *m = bigger;
    }
    uint32_t i = map_slot(m, id);
    if (!m->cells[i].value) m->count++;
    m->cells[i].id = id;
    m->cells[i].value = value;
}
static void map_remove(struct map *m, uint32_t id) {
    if (!map_get(m, id)) return;
    uint32_t hole = map_slot(m, id), i = hole;
    m->count--;
    for (;;) {                                   /* close the gap so that probes need no tombstones */
        m->cells[hole].value = NULL;
        for (;;) {
            i = (i + 1) & (m->capacity - 1);
            if (!m->cells[i].value) return;
            uint32_t home = (uint32_t)(m->cells[i].id * 2654435761u) & (m->capacity - 1);
            if (((i - home) & (m->capacity - 1)) >= ((i - hole) & (m->capacity - 1))) break;
        }
        m->cells[hole] = m->cells[i];
        hole = i;
    }
}

static struct target *action_target(uint32_t action, const uint8_t *params, uint32_t len) {
    struct target *target = calloc(1, sizeof *target + len);
    target->kind = TARGET_ACTION;
    target->action = action;
    target->params_len = len;
    memcpy(target->params, params, len);
    return target;
}

static int target_new(struct table *t, int kind, uint32_t id, const uint8_t *params, uint32_t len, struct target **out) {
    struct state *s = t->rt->sw.state;
    if (kind == TARGET_ACTION) {
        if (t->spec->profile >= 0 || !allowed(t->spec->actions, t->spec->action_count, id, len)) return E_INVALID;
        *out = action_target(id, params, len);
        return OK;
    }
    if (t->spec->profile < 0) return E_INVALID;
    struct profile *profile = &s->profiles[t->spec->profile];
    void *found = map_get(kind == TARGET_MEMBER ? &profile->members : &profile->groups, id);
    if (!found) return E_NOT_FOUND;
    struct target *target = calloc(1, sizeof *target);
    target->kind = (uint32_t)kind;
    if (kind == TARGET_MEMBER) (target->member = found)->references++;
    else (target->group = found)->references++;
    *out = target;
    return OK;
}

static void target_release(struct table *t, struct target *target) {
    if (!target) return;
    if (target->member) target->member->references--;
    if (target->group) target->group->references--;
    rcu_free(t->rt, target);
}

/* -- table calls (control lock held) ---------------------------------------------------------------------------------------------- */

static struct table *table_at(struct runtime *rt, uint32_t id) {
    struct state *s = rt->sw.state;
    return s && id < s->program->table_count ? s->tables[id] : NULL;
}

static struct entry *entry_at(struct runtime *rt, uint64_t handle, struct table **table) {
    struct table *t = table_at(rt, (uint32_t)(handle >> 32));
    uint32_t index = (uint32_t)handle;
    if (!t || index >= t->handle_capacity || !t->handles[index]) return NULL;
    if (table) *table = t;
    return t->handles[index];
}

static uint32_t handle_take(struct table *t, struct entry *e) {
    if (t->free_count == 0) {
        uint32_t capacity = t->handle_capacity ? t->handle_capacity * 2 : 64;
        t->handles = realloc(t->handles, capacity * sizeof *t->handles);
        t->free_handles = realloc(t->free_handles, capacity * sizeof *t->free_handles);
        for (uint32_t i = capacity; i-- > t->handle_capacity;) {
            t->handles[i] = NULL;
            t->free_handles[t->free_count++] = i;
        }
        t->handle_capacity = capacity;
    }
    uint32_t index = t->free_handles[--t->free_count];
    t->handles[index] = e;
    return index;
}

static int64_t insert(struct table *t, const uint8_t *key, int64_t priority, int kind, uint32_t id,
                      const uint8_t *params, uint32_t len) {
    size_t bytes = t->words * 8;
    uint64_t value[t->words + 1], mask[t->words + 1];
    uint8_t input[t->input_bytes + 1];
    memcpy(input, key, t->input_bytes);
    int rc = parse_key(t, input, (uint8_t *)value, (uint8_t *)mask, &priority);
    if (rc) return rc;
    struct tuple *u = tuple_with(t, mask);
    struct entry *head = u ? tuple_find(u, value, t->words) : NULL;
    if (chain_find(t, head, input, priority)) return E_DUPLICATE;
    if (t->count >= t->spec->size) return E_FULL;
    struct target *target;
    if ((rc = target_new(t, kind, id, params, len, &target))) return rc;

    struct entry *e = calloc(1, sizeof *e + bytes * (t->ranges ? 2 : 1) + t->input_bytes);
    memcpy(e->key, value, bytes);
    memcpy(entry_input(t, e), input, t->input_bytes);
    atomic_store(&e->target, target);
    e->priority = priority;
    e->order = t->order++;
    atomic_store(&e->last_hit, clock_ns());
    e->handle = (uint64_t)t->id << 32 | handle_take(t, e);
    u = tuple_for(t, mask, priority);
    if (head) {
        /* Chains are in order of urgency. The head is what the slot points to. */
        if (better(e, head)) {
            PUBLISH(e->next, head);
            struct slots *s = LOAD(u->slots);
            uint32_t i = hash_masked(value, u->mask, t->words) & s->mask;
            while (LOAD(s->slot[i].entry) != head) i = (i + 1) & s->mask;
            PUBLISH(s->slot[i].entry, e);
        } else {
            struct entry *at = head, *next;
            while ((next = LOAD(at->next)) && better(next, e)) at = next;
            PUBLISH(e->next, next);
            PUBLISH(at->next, e);
        }
    } else {
        if (2 * (u->used + 1) > LOAD(u->slots)->mask + 1) tuple_grow(t, u);
        slots_put(LOAD(u->slots), hash_masked(value, u->mask, t->words), e);
        u->used++;
    }
    u->entries++;
    t->count++;
    return (int64_t)e->handle;
}

static void erase(struct table *t, struct entry *e) {
    uint64_t value[t->words + 1], mask[t->words + 1];
    int64_t priority = e->priority;
    parse_key(t, entry_input(t, e), (uint8_t *)value, (uint8_t *)mask, &priority);
    struct tuple *u = tuple_with(t, mask);
    struct slots *s = LOAD(u->slots);
    uint32_t i = hash_masked(entry_value(e), u->mask, t->words) & s->mask;
    struct entry *head;
    for (;; i = (i + 1) & s->mask) {
        head = LOAD(s->slot[i].entry);
        if (head != &TOMBSTONE && memcmp(head->key, e->key, t->words * 8) == 0) break;
    }
    if (head == e) {
        struct entry *next = LOAD(e->next);
        PUBLISH(s->slot[i].entry, next ? next : &TOMBSTONE);
    } else {
        while (LOAD(head->next) != e) head = LOAD(head->next);
        PUBLISH(head->next, LOAD(e->next));
    }
    uint32_t index = (uint32_t)e->handle;
    t->handles[index] = NULL;
    t->free_handles[t->free_count++] = index;
    t->count--;
    target_release(t, LOAD(e->target));
    rcu_free(t->rt, e);
    if (--u->entries == 0 && !t->exact) tuple_drop(t, u);
}

/* -- exported ------------------------------------------------------------------------------------------------------------------- */

#define CONTROL(rt) pthread_mutex_lock(&(rt)->control)
#define RELEASE(rt) (rcu_collect(rt), pthread_mutex_unlock(&(rt)->control))

EXPORT int64_t sw_insert(struct runtime *rt, uint32_t table, const uint8_t *key, uint32_t key_len, int64_t priority,
                         int kind, uint32_t id, const uint8_t *params, uint32_t len) {
    CONTROL(rt);
    struct table *t = table_at(rt, table);
    int64_t rc = !t ? E_NOT_FOUND : key_len != t->input_bytes ? E_INVALID
                 : insert(t, key, priority, kind, id, params, len);
    RELEASE(rt);
    return rc;
}

/* `packed`: for each entry key, then params of lens[i] bytes. */
EXPORT int sw_insert_many(struct runtime *rt, uint32_t table, uint32_t count, const uint8_t *packed,
                          const int64_t *priorities, const int32_t *kinds, const uint32_t *ids, const uint32_t *lens,
                          int64_t *results) {
    CONTROL(rt);
    struct table *t = table_at(rt, table);
    for (uint32_t i = 0; t && i < count; i++) {
        results[i] = insert(t, packed, priorities[i], kinds[i], ids[i], packed + t->input_bytes, lens[i]);
        packed += t->input_bytes + lens[i];
        if (i % 1024 == 1023) rcu_collect(rt);
    }
    RELEASE(rt);
    return t ? OK : E_NOT_FOUND;
}

EXPORT int sw_modify(struct runtime *rt, uint64_t handle, int kind, uint32_t id, const uint8_t *params, uint32_t len) {
    CONTROL(rt);
    struct table *t;
    struct entry *e = entry_at(rt, handle, &t);
    struct target *target;
    int rc = e ? target_new(t, kind, id, params, len, &target) : E_NOT_FOUND;
    if (rc == OK) {
        target_release(t, atomic_exchange(&e->target, target));
        atomic_store(&e->last_hit, clock_ns());
    }
    RELEASE(rt);
    return rc;
}

EXPORT int sw_delete(struct runtime *rt, uint64_t handle) {
    CONTROL(rt);
    struct table *t;
    struct entry *e = entry_at(rt, handle, &t);
    if (e) erase(t, e);
    RELEASE(rt);
    return e ? OK : E_NOT_FOUND;
}

EXPORT int64_t sw_find(struct runtime *rt, uint32_t table, const uint8_t *key, uint32_t key_len, int64_t priority) {
    CONTROL(rt);
    int64_t found = E_NOT_FOUND;
    struct table *t = table_at(rt, table);
    if (t && key_len == t->input_bytes) {
        uint64_t value[t->words + 1], mask[t->words + 1];
        uint8_t input[t->input_bytes + 1];
        memcpy(input, key, t->input_bytes);
        if (parse_key(t, input, (uint8_t *)value, (uint8_t *)mask, &priority) == OK) {
            struct tuple *u = tuple_with(t, mask);
            struct entry *e = u ? chain_find(t, tuple_find(u, value, t->words), input, priority) : NULL;
            if (e) found = (int64_t)e->handle;
        }
    }
    RELEASE(rt);
    return found;
}

/* The handles of a table; call with NULL for the number. */
EXPORT int64_t sw_handles(struct runtime *rt, uint32_t table, uint64_t *out, uint32_t room) {
    CONTROL(rt);
    struct table *t = table_at(rt, table);
    uint32_t n = 0;
    for (uint32_t i = 0; t && out && i < t->handle_capacity && n < room; i++)
        if (t->handles[i]) out[n++] = t->handles[i]->handle;
    if (t && !out) n = t->count;
    RELEASE(rt);
    return n;
}

static void describe(const struct target *target, int32_t *kind, uint32_t *id, uint8_t *params, uint32_t *len) {
    *kind = (int32_t)target->kind;
    *id = target->member ? target->member->id : target->group ? target->group->id : target->action;
    *len = target->params_len;
    memcpy(params, target->params, target->params_len);
}

/* `key` and `params` are large enough for the table's longest. */
EXPORT int sw_entry(struct runtime *rt, uint64_t handle, uint8_t *key, int64_t *priority, uint64_t *order, int32_t *kind,
                    uint32_t *id, uint8_t *params, uint32_t *len) {
    CONTROL(rt);
    struct table *t;
    struct entry *e = entry_at(rt, handle, &t);
    if (e) {
        memcpy(key, entry_input(t, e), t->input_bytes);
        *priority = e->priority;
        *order = e->order;
        describe(LOAD(e->target), kind, id, params, len);
    }
    RELEASE(rt);
    return e ? OK : E_NOT_FOUND;
}

EXPORT int sw_set_default(struct runtime *rt, uint32_t table, int kind, uint32_t id, const uint8_t *params, uint32_t len) {
    CONTROL(rt);
    struct table *t = table_at(rt, table);
    struct target *target = NULL;
    int rc = !t ? E_NOT_FOUND : kind < 0 ? OK : target_new(t, kind, id, params, len, &target);
    if (rc == OK) target_release(t, atomic_exchange(&t->fallback, target));
    RELEASE(rt);
    return rc;
}

EXPORT int sw_default(struct runtime *rt, uint32_t table, int32_t *kind, uint32_t *id, uint8_t *params, uint32_t *len) {
    CONTROL(rt);
    struct table *t = table_at(rt, table);
    struct target *target = t ? LOAD(t->fallback) : NULL;
    if (target) describe(target, kind, id, params, len);
    RELEASE(rt);
    return target ? OK : E_NOT_FOUND;
}

EXPORT int64_t sw_idle(struct runtime *rt, uint64_t handle) {
    CONTROL(rt);
    struct entry *e = entry_at(rt, handle, NULL);
    int64_t idle = e ? (int64_t)(clock_ns() - atomic_load(&e->last_hit)) : E_NOT_FOUND;
    RELEASE(rt);
    return e && idle < 0 ? 0 : idle;
}

/* (packets, bytes), read or written where the pointer is not NULL. */
EXPORT int sw_direct_counter(struct runtime *rt, uint64_t handle, uint64_t *read, const uint64_t *write) {
    CONTROL(rt);
    struct table *t;
    struct entry *e = entry_at(rt, handle, &t);
    int rc = !e ? E_NOT_FOUND : !t->spec->counters ? E_INVALID : OK;
    if (rc == OK && read) { read[0] = e->counter.packets; read[1] = e->counter.bytes; }
    if (rc == OK && write) { e->counter.packets = write[0]; e->counter.bytes = write[1]; }
    RELEASE(rt);
    return rc;
}

int meter_access(struct meter *, uint64_t *read, const uint64_t *write);

EXPORT int sw_direct_meter(struct runtime *rt, uint64_t handle, uint64_t *read, const uint64_t *write) {
    CONTROL(rt);
    struct table *t;
    struct entry *e = entry_at(rt, handle, &t);
    int rc = !e ? E_NOT_FOUND : t->spec->meter < 0 ? E_INVALID : meter_access(&e->meter, read, write);
    RELEASE(rt);
    return rc;
}

/* -- action profiles ------------------------------------------------------------------------------------------------------------- */

static struct profile *profile_at(struct runtime *rt, uint32_t id) {
    struct state *s = rt->sw.state;
    return s && id < s->program->profile_count ? &s->profiles[id] : NULL;
}

EXPORT int sw_add_member(struct runtime *rt, uint32_t profile, uint32_t id, uint32_t action, const uint8_t *params,
                         uint32_t len) {
    CONTROL(rt);
    struct profile *p = profile_at(rt, profile);
    int rc = !p ? E_NOT_FOUND : map_get(&p->members, id) ? E_DUPLICATE
             : !allowed(p->spec->actions, p->spec->action_count, action, len) ? E_INVALID
             : p->spec->size && p->members.count >= p->spec->size ? E_FULL : OK;
    if (rc == OK) {
        struct member *m = calloc(1, sizeof *m);
        m->id = id;
        atomic_store(&m->target, action_target(action, params, len));
        map_put(&p->members, id, m);
    }
    RELEASE(rt);
    return rc;
}

EXPORT int sw_modify_member(struct runtime *rt, uint32_t profile, uint32_t id, uint32_t action, const uint8_t *params,
                            uint32_t len) {
    CONTROL(rt);
    struct profile *p = profile_at(rt, profile);
    struct member *m = p ? map_get(&p->members, id) : NULL;
    int rc = !m ? E_NOT_FOUND : !allowed(p->spec->actions, p->spec->action_count, action, len) ? E_INVALID : OK;
    if (rc == OK) rcu_free(rt, atomic_exchange(&m->target, action_target(action, params, len)));
    RELEASE(rt);
    return rc;
}

EXPORT int sw_delete_member(struct runtime *rt, uint32_t profile, uint32_t id) {
    CONTROL(rt);
    struct profile *p = profile_at(rt, profile);
    struct member *m = p ? map_get(&p->members, id) : NULL;
    int rc = !m ? E_NOT_FOUND : m->references ? E_IN_USE : OK;
    if (rc == OK) {
        map_remove(&p->members, id);
        rcu_free(rt, LOAD(m->target));
        rcu_free(rt, m);
    }
    RELEASE(rt);
    return rc;
}

static void group_release(struct runtime *rt, struct group_members *members) {
    if (!members) return;
    for (uint32_t i = 0; i < members->count; i++) members->list[i]->references--;
    rcu_free(rt, members);
}

EXPORT int sw_set_group(struct runtime *rt, uint32_t profile, uint32_t id, const uint32_t *members,
                        const uint32_t *weights, uint32_t count) {
    CONTROL(rt);
    struct profile *p = profile_at(rt, profile);
    int rc = p ? OK : E_NOT_FOUND;
    uint64_t total = 0;
    for (uint32_t i = 0; rc == OK && i < count; i++) {
        if (!map_get(&p->members, members[i])) rc = E_NOT_FOUND;
        total += weights[i];
    }
    if (rc == OK && total > 1 << 20) rc = E_FULL;
    if (rc == OK) {
        struct group_members *list = calloc(1, sizeof *list + total * sizeof list->list[0]);
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t w = 0; w < weights[i]; w++) {
                struct member *m = map_get(&p->members, members[i]);
                m->references++;
                list->list[list->count++] = m;
            }
        struct group *g = map_get(&p->groups, id);
        if (!g) {
            g = calloc(1, sizeof *g);
            g->id = id;
            map_put(&p->groups, id, g);
        }
        group_release(rt, atomic_exchange(&g->members, list));
    }
    RELEASE(rt);
    return rc;
}

EXPORT int sw_delete_group(struct runtime *rt, uint32_t profile, uint32_t id) {
    CONTROL(rt);
    struct profile *p = profile_at(rt, profile);
    struct group *g = p ? map_get(&p->groups, id) : NULL;
    int rc = !g ? E_NOT_FOUND : g->references ? E_IN_USE : OK;
    if (rc == OK) {
        map_remove(&p->groups, id);
        group_release(rt, LOAD(g->members));
        rcu_free(rt, g);
    }
    RELEASE(rt);
    return rc;
}

/* -- parser value sets ---------------------------------------------------------------------------------------------------------------- */

/* `data`: value and mask of each member. */
EXPORT int sw_vset(struct runtime *rt, uint32_t id, const uint8_t *data, uint32_t count) {
    CONTROL(rt);
    struct state *s = rt->sw.state;
    int rc = !s || id >= s->program->vset_count ? E_NOT_FOUND
             : count > s->program->vsets[id].size && s->program->vsets[id].size ? E_FULL : OK;
    if (rc == OK) {
        uint32_t bytes = s->program->vsets[id].bytes;
        struct vset *v = malloc(sizeof *v + (size_t)count * bytes * 2);
        v->count = count;
        v->bytes = bytes;
        memcpy(v->data, data, (size_t)count * bytes * 2);
        rcu_free(rt, atomic_exchange(&s->vsets[id], v));
    }
    RELEASE(rt);
    return rc;
}

bool vset_match(struct state *s, int id, const uint8_t *key, const uint8_t *mask) {
    struct vset *v = LOAD(s->vsets[id]);
    for (uint32_t i = 0; v && i < v->count; i++) {
        const uint8_t *value = v->data + (size_t)i * v->bytes * 2, *ternary = value + v->bytes;
        uint32_t b = 0;
        while (b < v->bytes && !((key[b] ^ value[b]) & ternary[b] & (mask ? mask[b] : 0xff))) b++;
        if (b == v->bytes) return true;
    }
    return false;
}

/* -- the state of a program ----------------------------------------------------------------------------------------------------------- */

static struct table *table_new(struct runtime *rt, uint32_t id, const struct table_spec *spec) {
    struct table *t = calloc(1, sizeof *t);
    t->spec = spec;
    t->rt = rt;
    t->id = id;
    t->words = (spec->key_bytes + 7) / 8;
    t->exact = true;
    for (uint32_t i = 0; i < spec->fields; i++) {
        const struct key_spec *f = &spec->key[i];
        t->input_bytes += f->bytes + (f->match == MATCH_EXACT ? 0 : f->match == MATCH_LPM ? 2u : f->bytes);
        if (f->match != MATCH_EXACT) t->exact = false;
        if (f->match == MATCH_RANGE) t->ranges = true;
    }
    return t;
}

struct state *state_new(struct runtime *rt, const struct program *p, void *library) {
    struct state *s = calloc(1, sizeof *s);
    s->program = p;
    s->library = library;
    s->tables = calloc(p->table_count + 1, sizeof *s->tables);
    for (uint32_t i = 0; i < p->table_count; i++) s->tables[i] = table_new(rt, i, &p->tables[i]);
    s->profiles = calloc(p->profile_count + 1, sizeof *s->profiles);
    for (uint32_t i = 0; i < p->profile_count; i++) s->profiles[i].spec = &p->profiles[i];
    s->counters = calloc(p->counter_count + 1, sizeof *s->counters);
    for (uint32_t i = 0; i < p->counter_count; i++)
        s->counters[i] = (struct counter_array){p->counters[i].size, calloc(p->counters[i].size + 1, sizeof(struct counter))};
    s->meters = calloc(p->meter_count + 1, sizeof *s->meters);
    for (uint32_t i = 0; i < p->meter_count; i++)
        s->meters[i] = (struct meter_array){p->meters[i].size, p->meters[i].cell == 1,
                                            calloc(p->meters[i].size + 1, sizeof(struct meter))};
    s->registers = calloc(p->register_count + 1, sizeof *s->registers);
    for (uint32_t i = 0; i < p->register_count; i++)
        s->registers[i] = (struct register_array){p->registers[i].size, p->registers[i].cell,
                                                  aligned_alloc(64, ((size_t)p->registers[i].size * p->registers[i].cell + 127) / 64 * 64)};
    for (uint32_t i = 0; i < p->register_count; i++)
        memset(s->registers[i].cells, 0, (size_t)p->registers[i].size * p->registers[i].cell);
    s->vsets = calloc(p->vset_count + 1, sizeof *s->vsets);
    s->digest_enabled = calloc(p->digest_count + 1, 1);
    return s;
}

static void table_free(struct table *t) {
    for (uint32_t i = 0; i < t->handle_capacity; i++)
        if (t->handles[i]) { free(LOAD(t->handles[i]->target)); free(t->handles[i]); }
    for (struct tuple *u = LOAD(t->tuples), *next; u; u = next) {
        next = LOAD(u->next);
        free(LOAD(u->slots));
        free(u);
    }
    free(LOAD(t->fallback));
    free(t->handles);
    free(t->free_handles);
    free(t);
}

/* Nobody may be running the program any more. */
void state_free(struct state *s) {
    if (!s) return;
    const struct program *p = s->program;
    for (uint32_t i = 0; i < p->table_count; i++) table_free(s->tables[i]);
    for (uint32_t i = 0; i < p->profile_count; i++) {
        struct profile *profile = &s->profiles[i];
        for (uint32_t c = 0; c < profile->members.capacity; c++) {
            struct member *m = profile->members.cells[c].value;
            if (m) { free(LOAD(m->target)); free(m); }
        }
        for (uint32_t c = 0; c < profile->groups.capacity; c++) {
            struct group *g = profile->groups.cells[c].value;
            if (g) { free(LOAD(g->members)); free(g); }
        }
        free(profile->members.cells);
        free(profile->groups.cells);
    }
    for (uint32_t i = 0; i < p->counter_count; i++) free(s->counters[i].cells);
    for (uint32_t i = 0; i < p->meter_count; i++) free(s->meters[i].cells);
    for (uint32_t i = 0; i < p->register_count; i++) free(s->registers[i].cells);
    for (uint32_t i = 0; i < p->vset_count; i++) free(LOAD(s->vsets[i]));
    free(s->tables); free(s->profiles); free(s->counters); free(s->meters); free(s->registers);
    free((void *)s->vsets); free(s->digest_enabled); free(s);
}

/* Match tables: how a packet finds its entry, and how entries come and go.
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
 * The control plane sees keys as `dataplane.py` documents them. An entry stores the masked value, and behind it the
 * control plane's own bytes, so that they can be given back (and ranges be compared). */
#include "tables.h"

static struct entry TOMBSTONE;

/* -- hashing ----------------------------------------------------------------------------------------------------------- */

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

/* -- lookup ------------------------------------------------------------------------------------------------------------ */

static inline uint64_t *entry_value(struct entry *e) { return (uint64_t *)(void *)e->key; }

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

/* -- slots and tuples -------------------------------------------------------------------------------------------------- */

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

/* -- the control plane's keys ------------------------------------------------------------------------------------------ */

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

/* -- inserting, finding, erasing --------------------------------------------------------------------------------------- */

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

int64_t table_insert(struct table *t, const uint8_t *key, int64_t priority, int kind, uint32_t id,
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

    struct entry *e = calloc(1, sizeof *e + bytes + t->input_bytes);
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

void table_erase(struct table *t, struct entry *e) {
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

struct entry *table_find(struct table *t, const uint8_t *key, int64_t priority) {
    uint64_t value[t->words + 1], mask[t->words + 1];
    uint8_t input[t->input_bytes + 1];
    memcpy(input, key, t->input_bytes);
    if (parse_key(t, input, (uint8_t *)value, (uint8_t *)mask, &priority) != OK) return NULL;
    struct tuple *u = tuple_with(t, mask);
    return u ? chain_find(t, tuple_find(u, value, t->words), input, priority) : NULL;
}

/* The control plane's calls on table entries: each takes the control lock, checks its ids, and returns a handle, OK or
 * an error. Handles are table << 32 | index. */
#include "tables.h"

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

EXPORT int64_t sw_insert(struct runtime *rt, uint32_t table, const uint8_t *key, uint32_t key_len, int64_t priority,
                         int kind, uint32_t id, const uint8_t *params, uint32_t len) {
    CONTROL(rt);
    struct table *t = table_at(rt, table);
    int64_t rc = !t ? E_NOT_FOUND : key_len != t->input_bytes ? E_INVALID
                 : table_insert(t, key, priority, kind, id, params, len);
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
        results[i] = table_insert(t, packed, priorities[i], kinds[i], ids[i], packed + t->input_bytes, lens[i]);
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
    if (e) table_erase(t, e);
    RELEASE(rt);
    return e ? OK : E_NOT_FOUND;
}

EXPORT int64_t sw_find(struct runtime *rt, uint32_t table, const uint8_t *key, uint32_t key_len, int64_t priority) {
    CONTROL(rt);
    struct table *t = table_at(rt, table);
    struct entry *e = t && key_len == t->input_bytes ? table_find(t, key, priority) : NULL;
    int64_t found = e ? (int64_t)e->handle : E_NOT_FOUND;
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

EXPORT int sw_direct_meter(struct runtime *rt, uint64_t handle, uint64_t *read, const uint64_t *write) {
    CONTROL(rt);
    struct table *t;
    struct entry *e = entry_at(rt, handle, &t);
    int rc = !e ? E_NOT_FOUND : t->spec->meter < 0 ? E_INVALID : meter_access(&e->meter, read, write);
    RELEASE(rt);
    return rc;
}

/* What entries point to: actions, and the members and groups of action profiles; parser value sets.
 *
 * A member or group is a fixed object that entries refer to; what it does is one pointer inside it, replaced whole. So
 * a change of a member reaches every entry and group at once, without touching them. */
#include "tables.h"

/* -- what the packet thread does --------------------------------------------------------------------------------------- */

const struct target *table_default(struct table *t) { return LOAD(t->fallback); }

const struct target *resolve_target(const struct target *target, struct packet *p, int profile) {
    if (target == NULL || target->kind == TARGET_ACTION) return target;
    if (target->kind == TARGET_MEMBER) return LOAD(target->member->target);
    struct group_members *m = LOAD(target->group->members);
    uint64_t hash = p->sw->state->program->select(p, profile);
    if (m->count == 0) return NULL;
    return LOAD(m->list[hash % m->count]->target);
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

/* -- ids --------------------------------------------------------------------------------------------------------------- */

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

/* -- targets ----------------------------------------------------------------------------------------------------------- */

static bool allowed(const struct action_spec *actions, uint32_t count, uint32_t id, uint32_t params) {
    for (uint32_t i = 0; i < count; i++)
        if (actions[i].id == id) return actions[i].params == params;
    return false;
}

static struct target *action_target(uint32_t action, const uint8_t *params, uint32_t len) {
    struct target *target = calloc(1, sizeof *target + len);
    target->kind = TARGET_ACTION;
    target->action = action;
    target->params_len = len;
    memcpy(target->params, params, len);
    return target;
}

int target_new(struct table *t, int kind, uint32_t id, const uint8_t *params, uint32_t len, struct target **out) {
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

void target_release(struct table *t, struct target *target) {
    if (!target) return;
    if (target->member) target->member->references--;
    if (target->group) target->group->references--;
    rcu_free(t->rt, target);
}

/* -- members and groups ------------------------------------------------------------------------------------------------ */

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

/* -- value sets -------------------------------------------------------------------------------------------------------- */

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

/* The state of a loaded program: made when it is loaded, freed when the next one has taken over. */
#include "tables.h"

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

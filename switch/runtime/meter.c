/* Two-rate three-colour meters in the colour-blind form BMv2 runs: the peak bucket is asked first (short: red, and
 * nothing more is taken), then the committed bucket (short: yellow).
 *
 * Tokens are doubles: a nanosecond of 1 byte/s is a fraction of a byte, and none may get lost. */
#include "runtime.h"

static double refill(double tokens, double rate, double burst, double seconds) {
    double filled = tokens + rate * seconds;
    return filled > burst ? burst : filled;
}

int meter_mark(struct meter *m, bool bytes, const struct packet *p) {
    if (!atomic_load_explicit(&m->configured, memory_order_acquire)) return 0;
    double seconds = (double)(p->sw->now - m->last) * 1e-9, units = bytes ? p->ingress_length : 1;
    if (p->sw->now < m->last) seconds = 0;
    m->last = p->sw->now;
    m->committed = refill(m->committed, (double)m->cir, (double)m->cburst, seconds);
    m->peak = refill(m->peak, (double)m->pir, (double)m->pburst, seconds);
    if (m->peak < units) return 2;
    m->peak -= units;
    if (m->committed < units) return 1;
    m->committed -= units;
    return 0;
}

/* read: configured?, cir, cburst, pir, pburst. write: the same. */
int meter_access(struct meter *m, uint64_t *read, const uint64_t *write) {
    if (read) {
        read[0] = atomic_load(&m->configured);
        read[1] = m->cir; read[2] = m->cburst; read[3] = m->pir; read[4] = m->pburst;
    }
    if (write) {
        atomic_store_explicit(&m->configured, false, memory_order_release);
        m->cir = write[1]; m->cburst = write[2]; m->pir = write[3]; m->pburst = write[4];
        m->committed = (double)m->cburst;
        m->peak = (double)m->pburst;
        m->last = clock_ns();
        atomic_store_explicit(&m->configured, write[0] != 0, memory_order_release);
    }
    return OK;
}

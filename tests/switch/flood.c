/* Feeds a data plane damaged frames as fast as it takes them: the inner loop of flood.py. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct runtime;
int64_t sw_process(struct runtime *, unsigned port, const uint8_t *frame, uint32_t len, uint8_t *out, uint64_t room);

enum { LONGEST = 2100, ROOM = 1 << 20 };

static uint64_t state;

static uint32_t next(uint32_t below) {           /* xorshift64* */
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)(((state * 2685821657736338717ull) >> 32) % below);
}

static uint32_t damage(uint8_t *frame, uint32_t len) {
    static const uint8_t edges[] = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff};
    uint32_t near = len < 96 ? len : 96;
    for (uint32_t n = next(5); n && near; n--) {
        uint8_t *at = frame + next(near);
        switch (next(3)) {
        case 0: *at = edges[next(sizeof edges)]; break;
        case 1: *at ^= (uint8_t)(1 << next(8)); break;
        default: *at = (uint8_t)next(256);
        }
    }
    if (len && next(4) == 0) len = next(len + 1);                     /* cut */
    if (next(16) == 0) {                                              /* lengthened */
        uint32_t more = next(LONGEST - len + 1);
        for (uint32_t i = 0; i < more; i++) frame[len + i] = (uint8_t)next(256);
        len += more;
    }
    return len;
}

/* `seeds`: frames one after the other, each with its length (2 bytes, this machine's order) in front. The frames that
 * came out in all, or a negative error of sw_process. The frame is a block of its own, so that reads past it show. */
int64_t flood(struct runtime *rt, const uint8_t *seeds, const uint32_t *offsets, uint32_t seed_count,
              const uint16_t *ports, uint32_t port_count, uint64_t frames, uint64_t random) {
    uint8_t *out = malloc(ROOM), *buffer = malloc(LONGEST);
    int64_t total = 0;
    state = random * 2 + 1;
    while (frames-- && total >= 0) {
        const uint8_t *seed = seeds + offsets[next(seed_count)];
        uint16_t len16;
        memcpy(&len16, seed, 2);
        uint32_t len = len16;
        if (next(20) == 0) {
            len = next(200);
            for (uint32_t i = 0; i < len; i++) buffer[i] = (uint8_t)next(256);
        } else {
            memcpy(buffer, seed + 2, len);
            len = damage(buffer, len);
        }
        if (!len) continue;
        uint8_t *frame = malloc(len);
        memcpy(frame, buffer, len);
        int64_t used = sw_process(rt, ports[next(port_count)], frame, len, out, ROOM);
        free(frame);
        if (used == -2) continue;                                     /* more came out than there is room for */
        total = used < 0 ? used : total + used;
    }
    free(out);
    free(buffer);
    return total;
}

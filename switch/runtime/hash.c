/* The hashes v1model names, bit for bit what BMv2 computes. */
#include "switch.h"
#include "bits.h"

/* The Internet checksum (RFC 1071) of the bytes, an odd last byte padded with zero. */
uint64_t hash_csum16(const uint8_t *p, size_t n) {
    uint64_t sum = 0;
    for (; n >= 4; p += 4, n -= 4) sum += be32(p);
    if (n >= 2) { sum += be16(p); p += 2; n -= 2; }
    if (n) sum += (uint64_t)*p << 8;
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return ~sum & 0xffff;
}

static uint64_t xor_words(const uint8_t *p, size_t n, unsigned word) {
    uint64_t result = 0;
    for (; n >= word; p += word, n -= word) result ^= load_be(p, word);
    for (size_t i = 0; i < n; i++) result ^= (uint64_t)p[i] << (8 * (word - 1 - i));
    return result;
}

uint64_t hash_xor16(const uint8_t *p, size_t n) { return xor_words(p, n, 2); }
uint64_t hash_xor32(const uint8_t *p, size_t n) { return xor_words(p, n, 4); }

uint64_t hash_identity(const uint8_t *p, size_t n) { return load_be(p, n > 8 ? 8 : (unsigned)n); }

uint64_t hash_round_robin(uint64_t *counter) { return (*counter)++; }

static uint64_t reflect(uint64_t v, unsigned bits) {
    uint64_t r = 0;
    for (unsigned i = 0; i < bits; i++) r |= (v >> i & 1) << (bits - 1 - i);
    return r;
}

uint64_t hash_crc(struct crc *c, const uint8_t *p, size_t n) {
    uint64_t mask = MASK64(c->bits);
    if (!c->ready) {
        /* Reflected input runs on a reflected table, so that the loop below needs no bit reversal. */
        for (unsigned i = 0; i < 256; i++) {
            uint64_t r = (uint64_t)(c->reflect_in ? reflect(i, 8) : i) << (c->bits - 8);
            for (int bit = 0; bit < 8; bit++) r = (r >> (c->bits - 1) & 1 ? r << 1 ^ c->polynomial : r << 1) & mask;
            c->table[i] = c->reflect_in ? reflect(r, c->bits) : r;
        }
        c->ready = true;
    }
    uint64_t r = c->reflect_in ? reflect(c->initial, c->bits) : c->initial;
    if (c->reflect_in) for (size_t i = 0; i < n; i++) r = c->table[(r ^ p[i]) & 0xff] ^ r >> 8;
    else for (size_t i = 0; i < n; i++) r = (c->table[(r >> (c->bits - 8) ^ p[i]) & 0xff] ^ r << 8) & mask;
    if (c->reflect_in != c->reflect_out) r = reflect(r, c->bits);
    return (r ^ c->final) & mask;
}

/* xxHash, 64 bits, seed 0 (Yann Collet's specification, version 0.1.1). */
#define P1 11400714785074694791ull
#define P2 14029467366897019727ull
#define P3 1609587929392839161ull
#define P4 9650029242287828579ull
#define P5 2870177450012600261ull

static inline uint64_t rotl(uint64_t v, int n) { return v << n | v >> (64 - n); }
static inline uint64_t le64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }
static inline uint32_t le32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static inline uint64_t xx_round(uint64_t acc, uint64_t lane) { return rotl(acc + lane * P2, 31) * P1; }

uint64_t hash_xxh64(const uint8_t *p, size_t n) {
    const uint8_t *end = p + n;
    uint64_t h = P5;
    if (n >= 32) {
        uint64_t acc[4] = {P1 + P2, P2, 0, 0 - P1};
        for (; end - p >= 32; p += 32)
            for (int i = 0; i < 4; i++) acc[i] = xx_round(acc[i], le64(p + 8 * i));
        h = rotl(acc[0], 1) + rotl(acc[1], 7) + rotl(acc[2], 12) + rotl(acc[3], 18);
        for (int i = 0; i < 4; i++) h = (h ^ xx_round(0, acc[i])) * P1 + P4;
    }
    h += n;
    for (; end - p >= 8; p += 8) h = rotl(h ^ xx_round(0, le64(p)), 27) * P1 + P4;
    if (end - p >= 4) { h = rotl(h ^ le32(p) * P1, 23) * P2 + P3; p += 4; }
    for (; p < end; p++) h = rotl(h ^ *p * P5, 11) * P1;
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

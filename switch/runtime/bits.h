/* Big-endian loads and stores, bit strings, and integers wider than the machine's.
 *
 * P4 fields are any number of bits wide. Up to 64 bits they live in uint8_t .. uint64_t, up to 128 in u128, beyond
 * that as big-endian bytes in memory; only arithmetic on them (rare) goes through `struct big`. BMv2 computes with
 * unbounded integers, so `struct big` is as wide as the program needs: the generator defines BIG_WORDS. */
#ifndef SWITCH_BITS_H
#define SWITCH_BITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef unsigned __int128 u128;
typedef __int128 i128;

#define MASK64(n) ((n) >= 64 ? ~0ull : (1ull << (n)) - 1)
#define MASK128(n) ((n) >= 128 ? ~(u128)0 : ((u128)1 << (n)) - 1)
#define U128(high, low) (((u128)(high) << 64) | (low))

static inline uint64_t be16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return __builtin_bswap16(v); }
static inline uint64_t be32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return __builtin_bswap32(v); }
static inline uint64_t be64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return __builtin_bswap64(v); }

/* n = 0..8 bytes; with a constant n this is one or two loads. */
static inline uint64_t load_be(const uint8_t *p, unsigned n) {
    switch (n) {
    case 0: return 0;
    case 1: return p[0];
    case 2: return be16(p);
    case 3: return be16(p) << 8 | p[2];
    case 4: return be32(p);
    case 5: return be32(p) << 8 | p[4];
    case 6: return be32(p) << 16 | be16(p + 4);
    case 7: return be32(p) << 24 | be16(p + 4) << 8 | p[6];
    default: return be64(p);
    }
}

static inline void put16(uint8_t *p, uint64_t v) { uint16_t b = __builtin_bswap16((uint16_t)v); memcpy(p, &b, 2); }
static inline void put32(uint8_t *p, uint64_t v) { uint32_t b = __builtin_bswap32((uint32_t)v); memcpy(p, &b, 4); }
static inline void put64(uint8_t *p, uint64_t v) { uint64_t b = __builtin_bswap64(v); memcpy(p, &b, 8); }

static inline void store_be(uint8_t *p, unsigned n, uint64_t v) {
    switch (n) {
    case 0: break;
    case 1: p[0] = (uint8_t)v; break;
    case 2: put16(p, v); break;
    case 3: put16(p, v >> 8); p[2] = (uint8_t)v; break;
    case 4: put32(p, v); break;
    case 5: put32(p, v >> 8); p[4] = (uint8_t)v; break;
    case 6: put32(p, v >> 16); put16(p + 4, v); break;
    case 7: put32(p, v >> 24); put16(p + 4, v >> 8); p[6] = (uint8_t)v; break;
    default: put64(p, v); break;
    }
}

/* n = 0..16 bytes. */
static inline u128 load_be128(const uint8_t *p, unsigned n) {
    if (n <= 8) return load_be(p, n);
    return (u128)load_be(p, n - 8) << 64 | be64(p + n - 8);
}

static inline void store_be128(uint8_t *p, unsigned n, u128 v) {
    if (n <= 8) { store_be(p, n, (uint64_t)v); return; }
    store_be(p, n - 8, (uint64_t)(v >> 64));
    put64(p + n - 8, (uint64_t)v);
}

/* `bits` bits from bit `offset` (0 is the most significant bit of p[0]) of p, at most 128. */
static inline u128 get_bits(const uint8_t *p, unsigned offset, unsigned bits) {
    u128 v = 0;
    for (unsigned done = 0; done < bits;) {
        unsigned at = offset + done, room = 8 - at % 8, take = bits - done < room ? bits - done : room;
        v = v << take | ((p[at / 8] >> (room - take)) & ((1u << take) - 1));
        done += take;
    }
    return v;
}

static inline void put_bits(uint8_t *p, unsigned offset, unsigned bits, u128 v) {
    for (unsigned done = 0; done < bits;) {
        unsigned at = offset + done, room = 8 - at % 8, take = bits - done < room ? bits - done : room;
        unsigned mask = ((1u << take) - 1) << (room - take);
        unsigned piece = (unsigned)(v >> (bits - done - take)) << (room - take);
        p[at / 8] = (uint8_t)((p[at / 8] & ~mask) | (piece & mask));
        done += take;
    }
}

/* Copies a bit string; dst and src may start anywhere in a byte. Bits around it in dst stay. */
static inline void copy_bits(uint8_t *dst, unsigned dst_offset, const uint8_t *src, unsigned src_offset, unsigned bits) {
    if (dst_offset % 8 == 0 && src_offset % 8 == 0) {
        memcpy(dst + dst_offset / 8, src + src_offset / 8, bits / 8);
        dst_offset += bits / 8 * 8; src_offset += bits / 8 * 8; bits %= 8;
    }
    while (bits) {
        unsigned take = bits > 64 ? 64 : bits;
        put_bits(dst, dst_offset, take, get_bits(src, src_offset, take));
        dst_offset += take; src_offset += take; bits -= take;
    }
}

/* A wide field is stored right-aligned in its bytes: the unused bits are the top ones of the first byte. */
static inline void wide_get(uint8_t *dst, unsigned bits, const uint8_t *src, unsigned offset) {
    unsigned pad = (8 - bits % 8) % 8;
    dst[0] = 0;
    copy_bits(dst, pad, src, offset, bits);
}

static inline void wide_put(uint8_t *dst, unsigned offset, const uint8_t *src, unsigned bits) {
    copy_bits(dst, offset, src, (8 - bits % 8) % 8, bits);
}

/* Whether two byte strings are the same number (BMv2 compares varbits so). */
static inline int same_number(const uint8_t *a, unsigned an, const uint8_t *b, unsigned bn) {
    for (; an > bn; an--) if (*a++) return 0;
    for (; bn > an; bn--) if (*b++) return 0;
    return memcmp(a, b, an) == 0;
}

/* Shifts where the distance may exceed the width. */
static inline uint64_t shl64(uint64_t v, uint64_t n) { return n >= 64 ? 0 : v << n; }
static inline uint64_t shr64(uint64_t v, uint64_t n) { return n >= 64 ? 0 : v >> n; }
static inline int64_t sar64(int64_t v, uint64_t n) { return v >> (n >= 63 ? 63 : n); }
static inline u128 shl128(u128 v, uint64_t n) { return n >= 128 ? 0 : v << n; }
static inline u128 shr128(u128 v, uint64_t n) { return n >= 128 ? 0 : v >> n; }
static inline i128 sar128(i128 v, uint64_t n) { return v >> (n >= 127 ? 127 : n); }
static inline int64_t sext64(uint64_t v, unsigned bits) {
    return (int64_t)(v << (64 - bits)) >> (64 - bits);
}
static inline i128 sext128(u128 v, unsigned bits) { return (i128)(v << (128 - bits)) >> (128 - bits); }

#ifdef BIG_WORDS
/* Two's complement, least significant word first. */
struct big { uint64_t w[BIG_WORDS]; };

static inline struct big big_from(i128 v) {
    struct big r;
    for (int i = 0; i < BIG_WORDS; i++) r.w[i] = i == 0 ? (uint64_t)v : i == 1 ? (uint64_t)(v >> 64) : v < 0 ? ~0ull : 0;
    return r;
}
static inline struct big big_from_u(u128 v) {
    struct big r = {{(uint64_t)v, (uint64_t)(v >> 64)}};
    return r;
}
static inline u128 big_low(struct big a) { return U128(a.w[1], a.w[0]); }
static inline int big_negative(const struct big *a) { return (int)(a->w[BIG_WORDS - 1] >> 63); }
static inline struct big big_load(const uint8_t *p, unsigned n) {
    struct big r = {{0}};
    for (unsigned i = 0; i < n && i < BIG_WORDS * 8; i++) r.w[i / 8] |= (uint64_t)p[n - 1 - i] << (i % 8 * 8);
    return r;
}
static inline void big_store(uint8_t *p, unsigned bits, struct big a) {
    unsigned n = (bits + 7) / 8;
    for (unsigned i = 0; i < n; i++) p[n - 1 - i] = (uint8_t)(a.w[i / 8] >> (i % 8 * 8));
    if (bits % 8) p[0] &= (uint8_t)((1u << bits % 8) - 1);
}
static inline struct big big_add(struct big a, struct big b) {
    u128 carry = 0;
    for (int i = 0; i < BIG_WORDS; i++) { carry += (u128)a.w[i] + b.w[i]; a.w[i] = (uint64_t)carry; carry >>= 64; }
    return a;
}
static inline struct big big_not(struct big a) { for (int i = 0; i < BIG_WORDS; i++) a.w[i] = ~a.w[i]; return a; }
static inline struct big big_sub(struct big a, struct big b) { return big_add(big_add(a, big_not(b)), big_from(1)); }
static inline struct big big_and(struct big a, struct big b) { for (int i = 0; i < BIG_WORDS; i++) a.w[i] &= b.w[i]; return a; }
static inline struct big big_or(struct big a, struct big b) { for (int i = 0; i < BIG_WORDS; i++) a.w[i] |= b.w[i]; return a; }
static inline struct big big_xor(struct big a, struct big b) { for (int i = 0; i < BIG_WORDS; i++) a.w[i] ^= b.w[i]; return a; }
static inline struct big big_shl(struct big a, uint64_t n) {
    struct big r = {{0}};
    if (n >= BIG_WORDS * 64ull) return r;
    int words = (int)(n / 64), bits = (int)(n % 64);
    for (int i = BIG_WORDS - 1; i >= words; i--) {
        r.w[i] = a.w[i - words] << bits;
        if (bits && i > words) r.w[i] |= a.w[i - words - 1] >> (64 - bits);
    }
    return r;
}
static inline struct big big_shr(struct big a, uint64_t n) {
    uint64_t fill = big_negative(&a) ? ~0ull : 0;
    struct big r;
    if (n > BIG_WORDS * 64ull) n = BIG_WORDS * 64ull;
    int words = (int)(n / 64), bits = (int)(n % 64);
    for (int i = 0; i < BIG_WORDS; i++) {
        uint64_t low = i + words < BIG_WORDS ? a.w[i + words] : fill;
        uint64_t high = i + words + 1 < BIG_WORDS ? a.w[i + words + 1] : fill;
        r.w[i] = bits ? low >> bits | high << (64 - bits) : low;
    }
    return r;
}
static inline struct big big_mul(struct big a, struct big b) {
    struct big r = {{0}};
    for (int i = 0; i < BIG_WORDS; i++) {
        u128 carry = 0;
        for (int j = 0; i + j < BIG_WORDS; j++) {
            carry += (u128)a.w[i] * b.w[j] + r.w[i + j];
            r.w[i + j] = (uint64_t)carry;
            carry >>= 64;
        }
    }
    return r;
}
static inline int big_compare(struct big a, struct big b) {
    if (big_negative(&a) != big_negative(&b)) return big_negative(&a) ? -1 : 1;
    for (int i = BIG_WORDS - 1; i >= 0; i--)
        if (a.w[i] != b.w[i]) return a.w[i] < b.w[i] ? -1 : 1;
    return 0;
}
/* The low `bits` bits, as an unsigned or a two's complement number. */
static inline struct big big_trim(struct big a, unsigned bits) {
    for (unsigned i = 0; i < BIG_WORDS; i++)
        if (bits <= i * 64) a.w[i] = 0;
        else if (bits < i * 64 + 64) a.w[i] &= MASK64(bits - i * 64);
    return a;
}
static inline struct big big_sext(struct big a, unsigned bits) {
    uint64_t shift = BIG_WORDS * 64ull - bits;
    return big_shr(big_shl(a, shift), shift);
}
#endif
#endif

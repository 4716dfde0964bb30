/* The externs that are neither table, meter nor hash: random, log_msg, assert and assume. */
#include "runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

uint64_t random_between(uint64_t low, uint64_t high) {
    static _Thread_local uint64_t state;
    if (!state) state = clock_ns() | 1;
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;          /* xorshift64 (Marsaglia 2003) */
    uint64_t span = high - low + 1, value = state * 0x2545f4914f6cdd1dull;
    return span ? low + (uint64_t)((unsigned __int128)value * span >> 64) : value;
}

static void write_log(struct runtime *rt, const char *text, size_t len) {
    if (rt->log_fd >= 0 && write(rt->log_fd, text, len) < 0) return;          /* a log that cannot be written is lost */
}

void log_text(struct sw *sw, const char *format, ...) {
    if (sw->rt->log_fd < 0) return;
    char line[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (n < 0) return;
    if (n > (int)sizeof line - 2) n = sizeof line - 2;
    line[n] = '\n';
    write_log(sw->rt, line, (size_t)n + 1);
}

/* log_msg: each {} takes the next value; \{ and \} are braces. */
void log_message(struct sw *sw, const char *format, unsigned count, const char *const *values) {
    if (sw->rt->log_fd < 0) return;
    char line[4096];
    size_t n = 0;
    unsigned used = 0;
    for (const char *c = format; *c && n < sizeof line - 2; c++) {
        if (*c == '\\' && (c[1] == '{' || c[1] == '}')) { line[n++] = *++c; continue; }
        const char *close = *c == '{' ? strchr(c, '}') : NULL;
        if (!close) { line[n++] = *c; continue; }
        if (used < count) {
            size_t len = strlen(values[used]);
            if (len > sizeof line - 2 - n) len = sizeof line - 2 - n;
            memcpy(line + n, values[used++], len);
            n += len;
        }
        c = close;
    }
    line[n++] = '\n';
    write_log(sw->rt, line, n);
}

/* BMv2 aborts here, by design: assert and assume are there to stop a run. */
void assertion_failed(struct sw *sw, const char *what) {
    log_text(sw, "%s", what);
    fprintf(stderr, "%s\n", what);
    abort();
}

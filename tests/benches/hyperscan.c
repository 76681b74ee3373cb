// The strongest peer: Hyperscan in its streaming mode, beside the rules' engine.
//
// Usage: hyperscan PATTERNS TEXT BYTES
// PATTERNS holds one pattern a line. For each line with a number on standard input, feeds TEXT that many times to a new
// stream in pieces of BYTES bytes, and prints the nanoseconds that took on the processor. Nothing may match.

#include <hs/hs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int on_match(unsigned int id, unsigned long long from, unsigned long long to, unsigned int flags, void *context) {
    (void)from, (void)to, (void)flags, (void)context;
    fprintf(stderr, "pattern %u matches\n", id);
    exit(1);
}

static char *whole(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        perror(path);
        exit(1);
    }
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    if (!bytes || fread(bytes, 1, *size, file) != *size) {
        perror(path);
        exit(1);
    }
    bytes[*size] = 0;
    fclose(file);
    return bytes;
}

static void check(hs_error_t result, const char *what) {
    if (result != HS_SUCCESS) {
        fprintf(stderr, "%s: error %d\n", what, result);
        exit(1);
    }
}

static hs_database_t *compile(char *patterns) {
    unsigned int count = 0, room = 16;
    const char **list = malloc(room * sizeof *list);
    for (char *line = strtok(patterns, "\n"); line; line = strtok(NULL, "\n")) {
        if (count == room) {
            list = realloc(list, (room *= 2) * sizeof *list);
        }
        list[count++] = line;
    }
    unsigned int *flags = calloc(count, sizeof *flags), *ids = calloc(count, sizeof *ids);
    for (unsigned int i = 0; i < count; i++) {
        // One match of a rule is all that a stream needs.
        flags[i] = HS_FLAG_SINGLEMATCH;
        ids[i] = i;
    }
    hs_database_t *database;
    hs_compile_error_t *error;
    if (hs_compile_multi(list, flags, ids, count, HS_MODE_STREAM, NULL, &database, &error) != HS_SUCCESS) {
        fprintf(stderr, "pattern %d: %s\n", error->expression, error->message);
        exit(1);
    }
    return database;
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: hyperscan PATTERNS TEXT BYTES\n");
        return 2;
    }
    size_t ignored, size, step = strtoul(arguments[3], NULL, 10);
    hs_database_t *database = compile(whole(arguments[1], &ignored));
    char *text = whole(arguments[2], &size);
    hs_scratch_t *scratch = NULL;
    check(hs_alloc_scratch(database, &scratch), "scratch");
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        unsigned long times = strtoul(line, NULL, 10);
        long long start = now();
        for (unsigned long i = 0; i < times; i++) {
            hs_stream_t *stream;
            check(hs_open_stream(database, 0, &stream), "open");
            for (size_t at = 0; at < size; at += step) {
                unsigned int length = (unsigned int)(size - at < step ? size - at : step);
                check(hs_scan_stream(stream, text + at, length, 0, scratch, on_match, NULL), "scan");
            }
            check(hs_close_stream(stream, scratch, on_match, NULL), "close");
        }
        printf("%lld\n", now() - start);
        fflush(stdout);
    }
    return 0;
}

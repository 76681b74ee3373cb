// Extism as a contender: one function of a plugin, called over and over with the same JSON.
//
// Usage: extism PLUGIN FUNCTION INPUT ANSWER
// PLUGIN, INPUT and ANSWER are files. Exits with an error unless FUNCTION answers INPUT with ANSWER. For each line with a
// number on standard input, calls it that many times and prints the nanoseconds that took on the processor of this thread.
// To write the input and to read the answer as JSON would be the host's work: it is not done here and not measured.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The functions of libextism that are used; its Python package has no header.
typedef struct ExtismPlugin ExtismPlugin;
typedef struct ExtismFunction ExtismFunction;
ExtismPlugin *extism_plugin_new(const uint8_t *wasm, uint64_t size, const ExtismFunction **functions, uint64_t count,
                                bool with_wasi, char **error);
int32_t extism_plugin_call(ExtismPlugin *plugin, const char *function, const uint8_t *data, uint64_t size);
const char *extism_plugin_error(ExtismPlugin *plugin);
uint64_t extism_plugin_output_length(ExtismPlugin *plugin);
const uint8_t *extism_plugin_output_data(ExtismPlugin *plugin);

typedef struct {
    uint8_t *bytes;
    size_t size;
} Bytes;

static Bytes whole(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        perror(path);
        exit(1);
    }
    Bytes all = {.size = (size_t)ftell(file)};
    rewind(file);
    all.bytes = malloc(all.size + 1);
    if (!all.bytes || fread(all.bytes, 1, all.size, file) != all.size) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return all;
}

// Calls the function and returns its answer, which is valid until the next call.
static Bytes call(ExtismPlugin *plugin, const char *function, Bytes input) {
    if (extism_plugin_call(plugin, function, input.bytes, input.size)) {
        const char *error = extism_plugin_error(plugin);
        fprintf(stderr, "%s: %s\n", function, error ? error : "the call failed and libextism gives no reason");
        exit(1);
    }
    return (Bytes){(uint8_t *)extism_plugin_output_data(plugin), extism_plugin_output_length(plugin)};
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: extism PLUGIN FUNCTION INPUT ANSWER\n");
        return 2;
    }
    const char *function = arguments[2];
    Bytes module = whole(arguments[1]), input = whole(arguments[3]), expected = whole(arguments[4]);
    char *error = NULL;
    ExtismPlugin *plugin = extism_plugin_new(module.bytes, module.size, NULL, 0, false, &error);
    if (!plugin) {
        fprintf(stderr, "%s: %s\n", arguments[1], error ? error : "libextism gives no reason");
        return 1;
    }
    Bytes answer = call(plugin, function, input);
    if (answer.size != expected.size || memcmp(answer.bytes, expected.bytes, expected.size)) {
        fprintf(stderr, "%s answers %.*s\n", function, (int)answer.size, (const char *)answer.bytes);
        return 1;
    }
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        unsigned long times = strtoul(line, NULL, 10);
        size_t read = 0;
        long long start = now();
        for (unsigned long i = 0; i < times; i++) {
            read += call(plugin, function, input).size;
        }
        long long took = now() - start;
        if (read != times * expected.size) {
            fprintf(stderr, "%s answers with another length at times\n", function);
            return 1;
        }
        printf("%lld\n", took);
        fflush(stdout);
    }
    return 0;
}

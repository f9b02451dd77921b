// SPDX-License-Identifier: Apache-2.0
// usage: replay TARGET CORPUS [MUTATIONS]
// Gives every file of the corpus to the target, then so many mutations of them (the table's number
// by default), which are the same each time. An input that brings the program down is left in
// ./crash-TARGET.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/tap.h"

enum { FILES_MAX = 100, INPUT_MAX = 1 << 16, STEPS_MAX = 4 };

static struct {
    char name[80];
    uint8_t *data;
    size_t size;
} files[FILES_MAX];
static int n_files;

static uint8_t input[INPUT_MAX + 1];
static size_t input_size;
static const char *target_name;

// Xorshift: the same on every machine.
static uint32_t state = 2463534242;
static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return below ? state % below : 0;
}

static void keep_input(void)
{
    char path[80];
    snprintf(path, sizeof path, "crash-%s", target_name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0 && write(fd, input, input_size) == (ssize_t)input_size)
        fprintf(stderr, "the input is in %s\n", path);
}

static void on_crash(int signo)
{
    keep_input();
    signal(signo, SIG_DFL);
    raise(signo);
}

// Of the sanitizers' library, in builds that have it.
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void catch_crashes(void)
{
    static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(keep_input);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        if (!__sanitizer_set_death_callback || deadly[i] == SIGABRT || deadly[i] == SIGALRM)
            signal(deadly[i], on_crash);
}

// A hang is a crash too.
static void run(const struct fuzz_target *t)
{
    enum { SECONDS_MAX = 20 };
    alarm(SECONDS_MAX);
    t->run(input, input_size);
    alarm(0);
}

static void read_file(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    fuzz_hold(f && n_files < FILES_MAX);
    files[n_files].size = fread(input, 1, INPUT_MAX, f);
    files[n_files].data = (uint8_t *)fuzz_text(input, files[n_files].size);
    snprintf(files[n_files++].name, sizeof files[0].name, "%s", name);
    fclose(f);
}

static void take_file(int i)
{
    input_size = files[i].size;
    memcpy(input, files[i].data, input_size);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void replay(const struct fuzz_target *t, const char *folder)
{
    struct dirent **list = NULL;
    int n = scandir(folder, &list, NULL, by_name);
    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.')
            read_file(folder, list[i]->d_name);
        free(list[i]);
    }
    free(list);
    for (int i = 0; i < n_files; i++) {
        take_file(i);
        run(t);
        bool refused = strncmp(files[i].name, "refused-", strlen("refused-")) == 0;
        CHECK(!t->judges || fuzz_accepted == !refused, "%s%s", files[i].name,
              !t->judges ? ""
              : refused  ? " is refused"
                         : " is accepted");
    }
    CHECK(n_files > 0, "there is a corpus");
}

static void insert(size_t at, const uint8_t *from, size_t n)
{
    n = n > INPUT_MAX - input_size ? INPUT_MAX - input_size : n;
    memmove(input + at + n, input + at, input_size - at);
    memcpy(input + at, from, n);
    input_size += n;
}

static void cut(size_t at, size_t n)
{
    n = n > input_size - at ? input_size - at : n;
    memmove(input + at, input + at + n, input_size - at - n);
    input_size -= n;
}

// One change: a byte, a cut, a piece of this or another file, a word that is often special.
static void change(void)
{
    static const char *const words[] = {"\0",
                                        "\xff",
                                        "\\u001b[2J",
                                        "\"",
                                        "{",
                                        "[",
                                        "\n",
                                        "-1",
                                        "0",
                                        "1e999",
                                        "NaN",
                                        "1e-400",
                                        "null",
                                        "=",
                                        "%00",
                                        "%2f",
                                        "..",
                                        "\xc2",
                                        "\xe2\x80\xae",
                                        "9007199254740993",
                                        "18446744073709551616",
                                        ","};
    static const char *const numbers[] = {
        "-1", "0", "1e300", "-1e300", "0.5", "9007199254740993", "18446744073709551616", "1e-400"};
    const char *number = numbers[draw(sizeof numbers / sizeof *numbers)];
    size_t at = draw((uint32_t)input_size + 1), length = 1 + draw(draw(8) ? 8 : 512);
    const char *word = words[draw(sizeof words / sizeof *words)];
    int other = (int)draw((uint32_t)n_files);
    size_t from = draw((uint32_t)files[other].size + 1);
    switch (draw(7)) {
    case 0:
        if (at < input_size)
            input[at] ^= (uint8_t)(1 << draw(8));
        break;
    case 1:
        if (at < input_size)
            input[at] = (uint8_t)draw(256);
        break;
    case 2:
        cut(at, length);
        break;
    case 3:
        insert(at, (const uint8_t *)word, *word ? strlen(word) : 1);
        break;
    case 4: // at the beginning of a text
        for (; at < input_size && input[at] != '"'; at++)
            continue;
        insert(at + (at < input_size), (const uint8_t *)word, strlen(word));
        break;
    case 5: // another number
        for (; at < input_size && (input[at] < '0' || input[at] > '9'); at++)
            continue;
        for (length = 0; at + length < input_size && input[at + length] &&
                         strchr("0123456789.", input[at + length]);)
            length++;
        cut(at, length);
        insert(at, (const uint8_t *)number, strlen(number));
        break;
    default:
        if (length > files[other].size - from)
            length = files[other].size - from;
        insert(at, files[other].data + from, length);
    }
}

static void mutate(const struct fuzz_target *t, int mutations)
{
    for (int i = 0; i < mutations; i++) {
        take_file((int)draw((uint32_t)n_files));
        for (uint32_t k = 1 + draw(STEPS_MAX); k; k--)
            change();
        run(t);
    }
    CHECK(true, "%d mutations", mutations);
}

int main(int argc, char **argv)
{
    const struct fuzz_target *t = argc >= 3 ? fuzz_find(argv[1]) : NULL;
    if (!t) {
        fputs("usage: replay TARGET CORPUS [MUTATIONS]\n", stderr);
        return 2;
    }
    target_name = t->name;
    fuzz_begin(t);
    catch_crashes();
    replay(t, argv[2]);
    mutate(t, n_files ? argc > 3 ? (int)strtol(argv[3], NULL, 10) : t->mutations : 0);
    for (int i = 0; i < n_files; i++)
        free(files[i].data);
    return tap_done();
}

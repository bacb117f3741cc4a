// SPDX-License-Identifier: Apache-2.0
/* Runs a fuzz target once over each file given, and over the files of each directory given. A tree
 * that is configured for fuzzing (./dev fuzz) links libFuzzer's main instead. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned n_run;

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    long size = -1;
    if (f && !fseek(f, 0, SEEK_END))
        size = ftell(f);
    if (size >= 0 && !fseek(f, 0, SEEK_SET))
        data = malloc(size ? (size_t)size : 1);
    size_t n = data ? fread(data, 1, (size_t)size, f) : 0;
    if (f)
        fclose(f);
    if (!data || n != (size_t)size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        free(data);
        return 1;
    }
    LLVMFuzzerTestOneInput(data, n);
    free(data);
    n_run++;
    return 0;
}

static int run(const char *path)
{
    DIR *d = opendir(path);
    int r = 0;
    if (!d)
        return run_file(path);
    for (struct dirent *e; (e = readdir(d));) {
        char name[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        r |= run_file(name);
    }
    closedir(d);
    return r;
}

int main(int argc, char **argv)
{
    int r = 0;
    for (int k = 1; k < argc; k++)
        r |= run(argv[k]);
    printf("%u inputs\n", n_run);
    return r || !n_run;
}

// SPDX-License-Identifier: Apache-2.0
/* wattshare coverage: what programs ask of CUDA, and whether all of it is there. Nothing is run.
 *
 * A program is judged with the libraries that it loads at its start; what it opens later by name (dlopen) is not seen. PTX
 * texts, fatbins and cubins are judged by themselves. */
#include "config.h"

#include "cli/coverage/coverage.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"
#include "ptx/ptx.h"

enum { WS_EXIT_MISSING = 1, DEFAULT_SM = 86 };

struct file {
    const void *data; /* page-aligned */
    size_t bytes;
};

static int map_file(const char *path, struct file *ret)
{
    struct stat st;
    int r = 0, fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st))
        r = -errno;
    else if (!S_ISREG(st.st_mode))
        r = -EISDIR;
    else if (!st.st_size)
        r = -ENODATA;
    if (!r) {
        ret->bytes = (size_t)st.st_size;
        ret->data = mmap(NULL, ret->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        r = ret->data == MAP_FAILED ? -errno : 0;
    }
    close(fd);
    return r;
}

static void add_missing_libraries(struct ws_cover *c, const char *object, char *names)
{
    char *save = NULL;
    for (char *n = strtok_r(names, "\n", &save); n; n = strtok_r(NULL, "\n", &save))
        ws_cover_add(c, &(struct ws_cover_item){.kind = WS_COVER_IMAGE,
                                                .state = WS_LEDGER_MISSING,
                                                .name = "library that is not installed",
                                                .object = (char *)object,
                                                .place = n});
}

/* One object and what it needs. Return: 0, 1: damaged, or negative. */
static int judge_object(struct ws_cover *c, struct ws_cover_code *code, struct ws_cover_libs *libs,
                        const char *path, const struct ws_elf *e, uint32_t sm,
                        struct ws_diags *diags)
{
    char *missing = NULL;
    int r = ws_cover_elf(c, path, e, code, sm, diags);
    if (!r)
        r = ws_cover_needed(libs, path, e, &missing);
    if (!r && missing)
        add_missing_libraries(c, path, missing);
    free(missing);
    return r;
}

static int judge_program(struct ws_cover *c, struct ws_cover_code *code, const struct file *f,
                         uint32_t sm, struct ws_diags *diags)
{
    struct ws_cover_libs libs = {0};
    struct ws_elf e;
    if (ws_elf_init(&e, f->data, f->bytes)) {
        ws_diags_add(diags, c->program, 0, 0, "a damaged ELF file, or not one for 64-bit x86");
        return 1;
    }
    int r = judge_object(c, code, &libs, c->program, &e, sm, diags);
    for (size_t i = 0; i < libs.n && !r; i++) { /* grows */
        struct file lib;
        if (map_file(libs.paths[i], &lib))
            continue;
        if (!ws_elf_init(&e, lib.data, lib.bytes))
            r = judge_object(c, code, &libs, libs.paths[i], &e, sm, diags);
        munmap((void *)lib.data, lib.bytes);
    }
    ws_cover_libs_deinit(&libs);
    if (!r && !c->n_uses) {
        ws_diags_add(diags, c->program, 0, 0, "no CUDA in it, nor in the libraries it loads");
        r = 1;
    }
    return r;
}

static int judge(struct ws_cover *c, const struct file *f, uint32_t sm, struct ws_diags *diags)
{
    struct ws_cover_code *code = ws_cover_code_new();
    int r = code ? 0 : ws_raise(-ENOMEM);
    if (!r && f->bytes >= SELFMAG && !memcmp(f->data, ELFMAG, SELFMAG) &&
        ws_image_kind(f->data, f->bytes) != WS_IMAGE_CUBIN) {
        r = judge_program(c, code, f, sm, diags);
    } else if (!r && ws_image_kind(f->data, f->bytes) == WS_IMAGE_UNKNOWN) {
        ws_diags_add(diags, c->program, 0, 0, "neither an ELF file, nor PTX, a fatbin or a cubin");
        r = 1;
    } else if (!r) {
        r = ws_cover_image(c, code, c->program, f->data, f->bytes, sm, diags);
    }
    if (!r)
        ws_cover_code_end(c, code);
    ws_cover_code_free(code);
    return c->oom ? -ENOMEM : r;
}

static void complain(struct ws_diags *diags)
{
    for (size_t i = 0; i < diags->n; i++)
        ws_cli_error("%s%s%s", diags->v[i].file ? diags->v[i].file : "",
                     diags->v[i].file ? ": " : "", diags->v[i].text ? diags->v[i].text : "");
}

#define USAGE "usage: wattshare coverage [--json] [--all] [--rewrites] [--ptxas] [--sm N] PROGRAM…"

struct options {
    bool json, all, rewrites, ptxas, help;
    uint32_t sm;
};

/* Return: the exit status for this one. */
static int one(const char *path, const struct options *o, struct json_object *list,
               struct ws_cover_ptxas_sum *sum)
{
    struct ws_cover c = {.program = path, .want_rewrites = o->rewrites, .want_ptxas = o->ptxas};
    struct ws_diags diags = WS_DIAGS_NULL;
    struct file f;
    int r = map_file(path, &f), status = 0;
    if (r) {
        ws_cli_error("%s: %s", path, r == -ENODATA ? "empty" : strerror(-r));
        return WS_EXIT_USAGE;
    }
    r = judge(&c, &f, o->sm, &diags);
    if (r) {
        complain(&diags);
        if (r < 0 || !diags.n)
            ws_cli_error("%s: %s", path, r < 0 ? strerror(-r) : "damaged");
        status = WS_EXIT_USAGE;
    } else {
        ws_cover_sort(&c);
        if (o->json)
            json_object_array_add(list, ws_cover_json(&c));
        else
            ws_cover_print(&c, o->all, stdout);
        for (int k = 0; k < _WS_COVER_N; k++)
            if (ws_cover_count(&c, k, WS_LEDGER_MISSING))
                status = WS_EXIT_MISSING;
    }
    if (c.ptxas_error)
        ws_cli_error("%s: ptxas refused %zu texts: %s", path, c.n_ptxas_refused, c.ptxas_error);
    ws_cover_ptxas_add(sum, &c);
    ws_cover_deinit(&c);
    ws_diags_deinit(&diags);
    munmap((void *)f.data, f.bytes);
    return status;
}

static int parse(int argc, char **argv, struct options *o)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"all", no_argument, NULL, 'a'},
                                            {"rewrites", no_argument, NULL, 'r'},
                                            {"sm", required_argument, NULL, 's'},
                                            {"ptxas", no_argument, NULL, 'p'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    char *end;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'j') {
            o->json = true;
        } else if (c == 'a') {
            o->all = true;
        } else if (c == 'r') {
            o->rewrites = true;
        } else if (c == 'p') {
            o->ptxas = true;
        } else if (c == 's') {
            unsigned long sm = strtoul(optarg, &end, 10);
            if (!*optarg || *end || sm < 10 || sm > 999) {
                ws_cli_error("--sm takes a compute capability as 75 or 90, not '%s'", optarg);
                return WS_EXIT_USAGE;
            }
            o->sm = (uint32_t)sm;
        } else if (c == 'h') {
            puts(USAGE);
            o->help = true;
            return 0;
        } else {
            return WS_EXIT_USAGE;
        }
    }
    if (optind == argc) {
        ws_cli_error("coverage of what? " USAGE);
        return WS_EXIT_USAGE;
    }
    return 0;
}

int ws_cli_coverage(int argc, char **argv)
{
    struct options o = {.sm = DEFAULT_SM};
    int worst = parse(argc, argv, &o);
    if (worst || o.help)
        return worst;
    struct json_object *list = json_object_new_array();
    struct ws_cover_ptxas_sum sum = {0};
    for (int i = optind; i < argc; i++) {
        int status = one(argv[i], &o, list, &sum);
        worst = WS_MAX(worst, status);
    }
    if (o.json)
        puts(json_object_to_json_string_ext(list, JSON_C_TO_STRING_PRETTY |
                                                      JSON_C_TO_STRING_NOSLASHESCAPE));
    else if (o.ptxas)
        ws_cover_ptxas_print(&sum, stdout);
    ws_cover_ptxas_sum_deinit(&sum);
    json_object_put(list);
    return worst;
}

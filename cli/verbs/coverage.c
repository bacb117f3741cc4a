// SPDX-License-Identifier: Apache-2.0
/* wattshare coverage: says what programs ask of CUDA, and whether wattshare has it. Nothing is
 * run.
 *
 * A program is judged with the libraries that it loads at its start. What it opens later by name
 * (dlopen) is not seen. PTX texts, fatbins and cubins are judged by themselves. */
#include "config.h"

#include "cli/coverage/coverage.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/common/options.h"
#include "papers/common/progress_bar.h"
#include "ptx/ptx.h"

enum { WS_EXIT_MISSING = 1, DEFAULT_SM = 86 };

struct mapped_file {
    const void *data; /* page-aligned */
    size_t bytes;
};

static int map_file(const char *path, struct mapped_file *ret)
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

static int judge_program(struct ws_cover *c, struct ws_cover_code *code,
                         const struct mapped_file *f, uint32_t sm, struct ws_diags *diags)
{
    struct ws_cover_libs libs = {0};
    struct ws_elf e;
    if (ws_elf_init(&e, f->data, f->bytes)) {
        ws_diags_add(diags, c->program, 0, 0, "a damaged ELF file, or not one for 64-bit x86");
        return 1;
    }
    int r = judge_object(c, code, &libs, c->program, &e, sm, diags);
    for (size_t i = 0; i < libs.n && !r; i++) { /* grows */
        struct mapped_file lib;
        if (map_file(libs.paths[i], &lib))
            continue;
        if (!ws_elf_init(&e, lib.data, lib.bytes))
            r = judge_object(c, code, &libs, libs.paths[i], &e, sm, diags);
        munmap((void *)lib.data, lib.bytes);
    }
    ws_cover_libs_deinit(&libs);
    if (!r && !c->n_uses) {
        ws_diags_add(diags, c->program, 0, 0, "no CUDA in it, nor in the libraries that it loads");
        r = 1;
    }
    return r;
}

static int judge(struct ws_cover *c, const struct mapped_file *f, uint32_t sm,
                 struct ws_diags *diags)
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

static struct ws_progress_bar bar;
static void show_progress(const char *what, uint64_t total, uint64_t done)
{
    if (bar.what != what) {
        ws_progress_bar_end(&bar);
        ws_progress_bar_start(&bar, what, total);
    }
    ws_progress_bar_step(&bar, done - bar.done);
}

struct coverage_options {
    bool json, all, rewrites, ptxas;
    int sm;
};

/* Return: the exit status for this one. */
static int one(const char *path, const struct coverage_options *o, struct json_object *list,
               struct ws_cover_ptxas_sum *sum)
{
    struct ws_cover c = {.program = path,
                         .progress = show_progress,
                         .want_rewrites = o->rewrites,
                         .want_ptxas = o->ptxas};
    struct ws_diags diags = WS_DIAGS_NULL;
    struct mapped_file f;
    int r = map_file(path, &f), status = 0;
    if (r) {
        ws_cli_error("%s: %s", path, r == -ENODATA ? "empty" : strerror(-r));
        return WS_EXIT_USAGE;
    }
    r = judge(&c, &f, (uint32_t)o->sm, &diags);
    ws_progress_bar_end(&bar);
    bar = (struct ws_progress_bar){.what = NULL};
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

static const struct ws_option options[] = {
    {"json", NULL, "Print JSON.", WS_FLAG(struct coverage_options, json)},
    {"all", NULL, "List what is done, too.", WS_FLAG(struct coverage_options, all)},
    {"rewrites", NULL, "Say of each kernel how it can be carried out while others share its GPU.",
     .more =
         "A kernel can be run in slices of its grid (slice); be stopped at a block boundary and "
         "resumed, or kept to some SMs (ticket; persistent: with few blocks that do the work of "
         "all); run in a context with others, without access to their memory (fence); or be "
         "merged with others into one launch (fuse). Where it cannot, the reason is printed "
         "with the line of PTX.",
     WS_FLAG(struct coverage_options, rewrites)},
    {"ptxas", NULL,
     "Assemble all kernels with these rewritings, and say what that costs in registers.",
     .more = "Needs a ptxas on the PATH. Says how many registers more the kernels take, and how "
             "many spill more; with --json, of each kernel.",
     WS_FLAG(struct coverage_options, ptxas)},
    {"sm", "N",
     "The compute capability whose PTX is chosen where a program has several, as 75 or 90 (86).",
     WS_INT(struct coverage_options, sm, 10, 999)},
    {0}};
static const char *const arguments[] = {"PROGRAM...", NULL};
static const char *const examples[] = {"wattshare coverage ./matmul",
                                       "wattshare coverage --rewrites --json kernels.ptx", NULL};

static int coverage(int argc, char **argv);

const struct ws_verb ws_verb_coverage = {
    .name = "coverage",
    .purpose = "say what a program asks of CUDA, and what of it is missing",
    .about = "PROGRAM is an ELF program or library, or a file of PTX, a fatbin or a cubin. Nothing "
             "is run.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .min_arguments = 1,
    .max_arguments = WS_ARGUMENTS_ANY,
    .missing = "coverage needs a program",
    .run = coverage,
};

static int coverage(int argc, char **argv)
{
    struct coverage_options o = {.sm = DEFAULT_SM};
    char **programs;
    int worst = ws_verb_parse(&ws_verb_coverage, argc, argv, &o, &programs);
    if (worst >= 0)
        return worst;
    worst = 0;
    struct json_object *list = json_object_new_array();
    struct ws_cover_ptxas_sum sum = {0};
    for (; *programs; programs++) {
        int status = one(*programs, &o, list, &sum);
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

// SPDX-License-Identifier: Apache-2.0
/* Finds what rewritings cost in registers and spills, if there is a ptxas: it assembles each PTX
 * text of the program, with all its rewritten kernels, for the text's own target, and compares
 * what `ptxas -v` says of the original and of the rewritten kernel. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cli/coverage/coverage.h"
#include "ptx/passes/pass.h"

extern char **environ;
enum { FUSE_MEMBERS = 2 };
enum { FENCE_TICKET = _WS_COVER_REWRITE_N, FENCE_PERSISTENT, _N_MADE };
static const char *const names[_N_MADE] = {"slice", "ticket",       "persistent",      "fence",
                                           "fuse",  "fence+ticket", "fence+persistent"};

struct ws_cover_ptxas { /* of one rewritten kernel */
    char *kernel;
    int pass, registers, change, spill_bytes, spill_change;
};

/* ---- making them ---- */
struct made {
    char *name, *from; /* malloc'ed */
    int pass;
    int registers, spill_bytes; /* -1: not heard of */
    int own_registers, own_spill_bytes;
};
struct all {
    struct made *v;
    size_t n, cap;
    char error[256]; /* the first that ptxas says */
    bool oom;
};

static void note(struct all *a, const struct ws_ptx_module *m, uint32_t func, uint32_t from,
                 int pass)
{
    if (ws_grow((void **)&a->v, &a->cap, a->n + 1, sizeof(*a->v))) {
        a->oom = true;
        return;
    }
    struct made *k = &a->v[a->n++];
    *k = (struct made){.name = ws_strdup(m->funcs[func].name),
                       .from = ws_strdup(m->funcs[from].name),
                       .pass = pass,
                       .registers = -1,
                       .own_registers = -1};
    a->oom |= !k->name || !k->from;
}

static void rewrite(struct all *a, struct ws_ptx_module *m, uint32_t from, uint32_t own,
                    enum ws_ptx_rewrite kind, int pass)
{
    char why[160];
    bool flat;
    uint32_t made;
    int r = ws_ptx_rewrite_refused(m, from, kind, &flat, why, sizeof(why));
    if (!r)
        r = ws_ptx_rewrite(m, from, kind, &made);
    if (!r)
        note(a, m, made, own, pass);
    a->oom |= r < 0;
}

static void rewrite_kernel(struct all *a, struct ws_ptx_module *m, uint32_t k)
{
    char why[160], name[4200];
    uint32_t fenced;
    struct ws_ptx_fused fused = {0};
    for (int kind = WS_REWRITE_SLICE; kind <= WS_REWRITE_PERSISTENT; kind++)
        rewrite(a, m, k, k, (enum ws_ptx_rewrite)kind, kind - WS_REWRITE_SLICE);
    int r = ws_ptx_fence_refused(m, k, why, sizeof(why));
    if (!r)
        r = ws_ptx_fence(m, k, &fenced);
    if (!r) {
        note(a, m, fenced, k, WS_COVER_FENCE);
        rewrite(a, m, fenced, k, WS_REWRITE_TICKET, FENCE_TICKET);
        rewrite(a, m, fenced, k, WS_REWRITE_PERSISTENT, FENCE_PERSISTENT);
    }
    a->oom |= r < 0;
    snprintf(name, sizeof(name), "%.4100s$fuse", m->funcs[k].name);
    r = ws_ptx_fuse_refused(m, k, why, sizeof(why));
    if (!r)
        r = ws_ptx_fuse_make(m, (uint32_t[FUSE_MEMBERS]){k, k}, FUSE_MEMBERS, false, name, &fused);
    if (!r)
        note(a, m, fused.func, k, WS_COVER_FUSE);
    a->oom |= r < 0;
}

/* ---- asking ---- */
/* Lines of `ptxas -v`:
 *   "… Compiling entry function 'k' for 'sm_75'", "… Function properties for k",
 *   "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
 *   "… Used 12 registers, …". */
static void hear(struct all *a, FILE *in)
{
    char line[9000], entry[4200] = "";
    bool own = false; /* what follows is of the entry itself */
    while (fgets(line, sizeof(line), in)) {
        const char *at;
        int n, stores = 0, loads = 0;
        bool used = false, spills = false;
        if (!*a->error && (strstr(line, "error") || strstr(line, "fatal")))
            snprintf(a->error, sizeof(a->error), "%.250s", line);
        if ((at = strstr(line, "Compiling entry function '")) != NULL &&
            sscanf(at, "Compiling entry function '%4199[^']'", entry) == 1)
            continue;
        if ((at = strstr(line, "Function properties for ")) != NULL) {
            char name[4200];
            own = sscanf(at, "Function properties for %4199s", name) == 1 && !strcmp(name, entry);
            continue;
        }
        if (own &&
            sscanf(line, " %d bytes stack frame, %d bytes spill stores, %d bytes spill loads", &n,
                   &stores, &loads) == 3)
            spills = true;
        else if ((at = strstr(line, "Used ")) != NULL && sscanf(at, "Used %d registers", &n) == 1)
            used = true;
        for (size_t k = 0; k < a->n && (used || spills); k++) {
            struct made *v = &a->v[k];
            bool made = !strcmp(v->name, entry), from = !strcmp(v->from, entry);
            if (used && made)
                v->registers = n;
            if (used && from)
                v->own_registers = n;
            if (spills && made)
                v->spill_bytes = stores + loads;
            if (spills && from)
                v->own_spill_bytes = stores + loads;
        }
    }
}

/* Starts ptxas on @path. Return: where it can be heard, or NULL: there is none. */
static FILE *start(const char *path, const char *target, pid_t *ret_pid)
{
    char arch[64];
    int ends[2];
    posix_spawn_file_actions_t acts;
    if (pipe2(ends, O_CLOEXEC))
        return NULL;
    snprintf(arch, sizeof(arch), "-arch=%.50s", target);
    char *argv[] = {"ptxas", "-v", arch, "-o", "/dev/null", (char *)path, NULL};
    posix_spawn_file_actions_init(&acts);
    posix_spawn_file_actions_adddup2(&acts, ends[1], 1);
    posix_spawn_file_actions_adddup2(&acts, ends[1], 2);
    int r = posix_spawnp(ret_pid, "ptxas", &acts, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&acts);
    close(ends[1]);
    FILE *f = r ? NULL : fdopen(ends[0], "r");
    if (!f)
        close(ends[0]);
    return f;
}

/* Return: 0; 1: there is no ptxas, or it didn't like the text. */
static int ask(struct all *a, const char *text, size_t bytes, const char *target, bool *ret_none)
{
    char path[] = "/tmp/wattshare-XXXXXX";
    int fd = mkstemp(path), status = -1;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    pid_t pid;
    if (!f)
        return 1;
    bool written = fwrite(text, 1, bytes, f) == bytes;
    written &= fclose(f) == 0;
    FILE *in = written ? start(path, target, &pid) : NULL;
    *ret_none = !in;
    if (in) {
        hear(a, in);
        fclose(in);
        if (waitpid(pid, &status, 0) != pid)
            status = -1;
    }
    unlink(path);
    return status == 0 ? 0 : 1;
}

/* ---- results ---- */
static void keep(struct ws_cover *c, struct made *v)
{
    if (v->registers < 0 || v->own_registers < 0)
        return;
    if (ws_grow((void **)&c->ptxas, &c->cap_ptxas, c->n_ptxas + 1, sizeof(*c->ptxas))) {
        c->oom = true;
        return;
    }
    c->ptxas[c->n_ptxas++] =
        (struct ws_cover_ptxas){.kernel = v->from,
                                .pass = v->pass,
                                .registers = v->registers,
                                .change = v->registers - v->own_registers,
                                .spill_bytes = v->spill_bytes,
                                .spill_change = v->spill_bytes - v->own_spill_bytes};
    v->from = NULL;
}

static void refused(struct ws_cover *c, struct all *a, bool none)
{
    if (none)
        return;
    a->error[strcspn(a->error, "\n")] = 0;
    if (!c->n_ptxas_refused++)
        c->ptxas_error = ws_strdup(*a->error ? a->error : "no word why");
}

void ws_cover_ptxas(struct ws_cover *c, const struct ws_ptx_module *given)
{
    struct ws_ptx_module *m = NULL;
    struct all a = {0};
    char *text = NULL;
    size_t bytes = 0;
    bool none = false;
    FILE *f = open_memstream(&text, &bytes);
    int r = f ? ws_ptx_print(given, f) : -ENOMEM;
    if (f && fclose(f))
        r = -ENOMEM;
    if (!r)
        r = ws_ptx_parse(&m, text, bytes, NULL, NULL); /* a copy, to be rewritten */
    free(text);
    text = NULL;
    for (uint32_t k = 0, n = r ? 0 : m->n_funcs; k < n && !a.oom; k++)
        if (m->funcs[k].is_entry && !m->funcs[k].is_decl)
            rewrite_kernel(&a, m, k);
    f = r || a.oom || !a.n ? NULL : open_memstream(&text, &bytes);
    if (f) {
        r = ws_ptx_print(m, f);
        if (!fclose(f) && !r && ask(&a, text, bytes, m->target, &none))
            refused(c, &a, none);
        c->no_ptxas |= none;
        for (size_t k = 0; k < a.n; k++)
            keep(c, &a.v[k]);
    }
    c->oom |= r < 0 || a.oom;
    for (size_t k = 0; k < a.n; k++) {
        free(a.v[k].name);
        free(a.v[k].from);
    }
    free(a.v);
    free(text);
    ws_ptx_module_free(m);
}

static int by_number(const void *va, const void *vb)
{
    return *(const int *)va - *(const int *)vb;
}

void ws_cover_ptxas_add(struct ws_cover_ptxas_sum *s, const struct ws_cover *c)
{
    s->none |= c->no_ptxas;
    s->n_refused += c->n_ptxas_refused;
    for (size_t k = 0; k < c->n_ptxas; k++) {
        if (ws_grow((void **)&s->v, &s->cap, s->n + 1, sizeof(*s->v))) {
            s->none = true;
            return;
        }
        s->v[s->n++] = c->ptxas[k];
        s->v[s->n - 1].kernel = NULL; /* not ours */
    }
}

void ws_cover_ptxas_print(const struct ws_cover_ptxas_sum *s, FILE *out)
{
    if (s->none) {
        fputs("no ptxas on the PATH: registers and spills were not looked at\n", out);
        return;
    }
    fputs("registers and spills, by ptxas for each text's own target\n"
          "  pass              kernels  registers: median     90 %    max  more spills\n",
          out);
    int *changes = ws_alloc_array(s->n + 1, sizeof(*changes));
    for (int pass = 0; pass < _N_MADE && changes; pass++) {
        size_t n = 0, spilling = 0;
        for (size_t k = 0; k < s->n; k++)
            if (s->v[k].pass == pass) {
                changes[n++] = s->v[k].change;
                spilling += s->v[k].spill_change > 0;
            }
        if (!n)
            continue;
        qsort(changes, n, sizeof(*changes), by_number);
        fprintf(out, "  %-17s %7zu             %+6d   %+6d %+6d  %zu\n", names[pass], n,
                changes[n / 2], changes[n * 9 / 10], changes[n - 1], spilling);
    }
    free(changes);
    if (s->n_refused)
        fprintf(out, "  ptxas refused %zu texts\n", s->n_refused);
}

void ws_cover_ptxas_sum_deinit(struct ws_cover_ptxas_sum *s)
{
    free(s->v);
}

struct json_object *ws_cover_ptxas_json(const struct ws_cover *c)
{
    struct json_object *list = json_object_new_array();
    for (size_t k = 0; k < c->n_ptxas; k++) {
        const struct ws_cover_ptxas *p = &c->ptxas[k];
        struct json_object *o = json_object_new_object();
        json_object_object_add(o, "kernel", json_object_new_string(p->kernel));
        json_object_object_add(o, "pass", json_object_new_string(names[p->pass]));
        json_object_object_add(o, "registers", json_object_new_int(p->registers));
        json_object_object_add(o, "change", json_object_new_int(p->change));
        json_object_object_add(o, "spill_bytes", json_object_new_int(p->spill_bytes));
        json_object_object_add(o, "spill_change", json_object_new_int(p->spill_change));
        json_object_array_add(list, o);
    }
    return list;
}

void ws_cover_ptxas_deinit(struct ws_cover *c)
{
    for (size_t k = 0; k < c->n_ptxas; k++)
        free(c->ptxas[k].kernel);
    free(c->ptxas);
    free(c->ptxas_error);
}

// SPDX-License-Identifier: Apache-2.0
/* nvcc links the CUDA runtime statically by default: its functions are then ordinary local code of
 * the program, which no symbol preemption reaches. They still stand in .symtab; there we find each
 * entry point and write a jump to our façade over its first bytes, before anything of the program
 * has run (preload constructors run first) and, for libraries that come later, before their
 * constructors run.
 *
 * Jump. FF 25 00000000 and the 8-byte target: 14 bytes, clobbers no register. A few entry points
 * are shorter; they are aligned to 16 bytes, so the padding behind them takes the rest (it is
 * checked to be padding). Where there is none, a 5-byte relative jump goes to a page nearby that
 * holds the long one. Pages are writable only while they are not executable.
 *
 * Later libraries. The dynamic linker calls an empty function, _r_debug.r_brk, for debuggers, when
 * it has mapped new objects and before it runs their constructors (glibc 2.36: even before it
 * relocates them, which jumps don't mind). We write a jump to our scan over it, if it looks as
 * expected; a debugger that has put its breakpoint there is left alone, and then
 * ws_redirect_early() is false and dlopen() is followed by a scan (dlhook.c), too late only for
 * what constructors did.
 *
 * No symbols. An object with .nvFatBinSegment registers CUDA code; if it neither imports
 * __cudaRegisterFatBinary nor has it in .symtab, it carries a stripped runtime. If that is one of
 * those that base/runtimes/static_runtime.h knows, its functions are where they are in NVIDIA's
 * archive, and it is redirected as any other. Otherwise we can't find it. NVIDIA's runtime must not
 * run on top of our driver façade, so a program is stopped. A library may never be used, so it is
 * only remembered: when its runtime asks for the driver, dlhook.c refuses. So it does for NVIDIA's
 * shared runtime, whose symbols ours preempt. */
#include "frontend/interpose/redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/elf.h"
#include "base/runtimes/static_runtime.h"
#include "frontend/interpose/entrypoints.h"
#include "frontend/interpose/toolkit.h"
#include "frontend/interpose/variables.h"

enum { JUMP_BYTES = 14, NEAR_JUMP_BYTES = 5, PAGE = 4096, EXIT_CANNOT_RUN = 126 };
#define CURE                                                                                       \
    "build it with nvcc's option -cudart shared, or with a CUDA runtime of 12.9 to 13.5, or do "   \
    "not "                                                                                         \
    "strip it"

/* ---- code ---- */

static void put_jump(uint8_t *at, const void *target)
{
    static const uint8_t jmp_rip[6] = {0xff, 0x25};
    memcpy(at, jmp_rip, sizeof(jmp_rip));
    memcpy(at + sizeof(jmp_rip), &target, sizeof(target));
}

/* Length of the no-op or int3 at @p, as compilers and assemblers pad with; 0 if it is none. */
static size_t padding_at(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *q = p;
    if (*q == 0xcc)
        return 1;
    while (q < end && *q == 0x66)
        q++;
    if (q < end && *q == 0x2e)
        q++;
    if (q < end && *q == 0x90)
        return q + 1 - p;
    if (end - q < 3 || q[0] != 0x0f || q[1] != 0x1f || (q[2] & 0x38))
        return 0;
    unsigned mod = q[2] >> 6, rm = q[2] & 7;
    size_t n = 3 + (mod != 3 && rm == 4) + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
    return (size_t)(end - q) >= n ? (size_t)(q + n - p) : 0;
}

/* True if all of [p + size, p + 14) is padding. The last no-op may go on until the next 16
 * bytes. */
static bool padded(const uint8_t *p, size_t size)
{
    const uint8_t *end = p + 16;
    if ((uintptr_t)p % 16)
        return false;
    for (const uint8_t *q = p + size; q < p + JUMP_BYTES;) {
        size_t n = padding_at(q, end);
        if (!n)
            return false;
        q += n;
    }
    return true;
}

/* Room for a long jump within 2 GiB of @near. Pages are writable only while one is added. NULL if
 * there is no room. */
static uint8_t *trampoline(const uint8_t *near, const void *target)
{
    static uint8_t *page;
    static size_t used;
    const int64_t reach = INT64_C(0x70000000);
    if (!page || used + 16 > PAGE || llabs(page - near) > reach) {
        page = NULL;
        for (int64_t step = 16 * PAGE; step < reach && !page; step *= 2) {
            for (int side = -1; side <= 1 && !page; side += 2) {
                uint8_t *want =
                    (uint8_t *)(((uintptr_t)near + side * step) & ~(uintptr_t)(PAGE - 1));
                void *p = mmap(want, PAGE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
                if (p != MAP_FAILED && p != want)
                    munmap(p, PAGE);
                else if (p != MAP_FAILED)
                    page = p;
            }
        }
        used = 0;
        if (!page)
            return NULL;
    } else if (mprotect(page, PAGE, PROT_READ | PROT_WRITE)) {
        return NULL;
    }
    uint8_t *at = page + used;
    used += 16;
    put_jump(at, target);
    return mprotect(page, PAGE, PROT_READ | PROT_EXEC) ? NULL : at;
}

/* @p: writable, @size bytes of function. */
static bool redirect_one(uint8_t *p, uint64_t size, const void *target)
{
    if (size >= JUMP_BYTES || padded(p, size)) {
        put_jump(p, target);
        return true;
    }
    uint8_t *t = size >= NEAR_JUMP_BYTES ? trampoline(p, target) : NULL;
    if (!t)
        return false;
    int32_t distance = (int32_t)(t - (p + NEAR_JUMP_BYTES));
    p[0] = 0xe9;
    memcpy(p + 1, &distance, sizeof(distance));
    return true;
}

/* ---- one object ---- */

static bool named(const struct ws_elf_symbols *s, const char *name, bool defined)
{
    size_t n = strlen(name);
    for (uint64_t i = 0; i < s->n; i++) {
        const Elf64_Sym *sym = &s->v[i];
        if ((sym->st_shndx != SHN_UNDEF) != defined || sym->st_name >= s->names_bytes ||
            s->names_bytes - sym->st_name <= n)
            continue;
        if (!memcmp(s->names + sym->st_name, name, n + 1))
            return true;
    }
    return false;
}

/* As named(), but quick where the answer is no: the string table is searched first. */
static bool defines(const struct ws_elf_symbols *s, const char *name)
{
    return memmem(s->names, s->names_bytes, name, strlen(name) + 1) && named(s, name, true);
}

struct target {
    uint64_t value, size;
    void *fn;
};

static int compare_targets(const void *a, const void *b)
{
    const struct target *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

static int collect(const struct ws_elf *e, const struct ws_elf_symbols *s,
                   void *(*find)(const char *), struct target **ret, size_t *ret_n)
{
    size_t cap = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        const Elf64_Sym *sym = &s->v[i];
        void *fn;
        if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx == SHN_UNDEF ||
            sym->st_name >= s->names_bytes || s->names_bytes - sym->st_name < sizeof("cuda") ||
            (memcmp(s->names + sym->st_name, "cuda", 4) != 0 &&
             memcmp(s->names + sym->st_name, "__cu", 4) != 0))
            continue;
        const char *name = ws_elf_symbol_name(s, sym);
        if (!name || !(fn = find(name)) ||
            !ws_elf_code_segment(e, sym->st_value, WS_MAX(sym->st_size, (uint64_t)1)))
            continue;
        if (ws_grow((void **)ret, &cap, *ret_n + 1, sizeof(**ret)))
            return ws_raise(-ENOMEM);
        (*ret)[(*ret_n)++] = (struct target){sym->st_value, sym->st_size, fn};
    }
    return 0;
}

/* As collect(), of a runtime without symbols. */
static int collect_stripped(const struct ws_elf *e, const struct ws_static_runtime *rt,
                            void *(*find)(const char *), struct target **ret, size_t *ret_n)
{
    struct ws_static_function f;
    size_t cap = 0;
    for (size_t i = 0; ws_static_runtime_next(rt, &i, &f);) {
        void *fn = find(f.name);
        if (!fn || !ws_elf_code_segment(e, f.address, f.bytes))
            continue;
        if (ws_grow((void **)ret, &cap, *ret_n + 1, sizeof(**ret)))
            return ws_raise(-ENOMEM);
        (*ret)[(*ret_n)++] = (struct target){f.address, f.bytes, fn};
    }
    return 0;
}

/* Does the object register code with a runtime that it holds, but not by name? */
static bool has_nameless_runtime(const struct ws_elf *e)
{
    struct ws_elf_symbols dynamic;
    return ws_elf_section(e, ".nvFatBinSegment") &&
           !(ws_elf_symbols(e, SHT_DYNSYM, &dynamic) &&
             named(&dynamic, "__cudaRegisterFatBinary", false));
}

/* May the object hold a runtime though it has no kernels, as modules of Python do that call the
 * runtime? Each runtime looks up the driver, and has the names of CUDA's errors; others have the
 * names, too, so the runtime's code decides. */
static bool has_error_names(const struct ws_elf *e)
{
    static const char name[] = "cudaErrorCudartUnloading", lookup[] = "dlsym";
    struct ws_elf_symbols dynamic;
    const Elf64_Shdr *s = ws_elf_section(e, ".rodata");
    const void *text = s ? ws_elf_contents(e, s, 1) : NULL;
    return text && ws_elf_symbols(e, SHT_DYNSYM, &dynamic) &&
           memmem(dynamic.names, dynamic.names_bytes, lookup, sizeof(lookup)) &&
           memmem(text, s->sh_size, name, sizeof(name));
}

/* Writes the jumps of one run of pages. */
static int write_jumps(const struct target *t, size_t n, uintptr_t base, size_t *n_failed)
{
    uintptr_t first = (base + t[0].value) & ~(uintptr_t)(PAGE - 1);
    uintptr_t last = (base + t[n - 1].value + JUMP_BYTES - 1) | (PAGE - 1);
    if (mprotect((void *)first, last + 1 - first, PROT_READ | PROT_WRITE))
        return ws_raise(-errno);
    for (size_t i = 0; i < n; i++)
        if (!redirect_one((uint8_t *)(base + t[i].value), t[i].size, t[i].fn))
            ++*n_failed;
    return mprotect((void *)first, last + 1 - first, PROT_READ | PROT_EXEC) ? ws_raise(-errno) : 0;
}

/* The places of the entry points of the runtime in @e. Return: 0, or as ws_redirect_object(). */
static int find_targets(const struct ws_elf *e, void *(*find)(const char *), struct target **ret,
                        size_t *ret_n, struct ws_redirected *result)
{
    struct ws_elf_symbols s;
    struct ws_static_runtime stripped;
    if (ws_elf_symbols(e, SHT_SYMTAB, &s) && defines(&s, "__cudaRegisterFatBinary") &&
        defines(&s, "cudaMalloc"))
        return collect(e, &s, find, ret, ret_n);
    bool has_kernels = has_nameless_runtime(e);
    if (!has_kernels && !has_error_names(e))
        return WS_REDIRECT_NONE;
    if (!ws_static_runtime_find(e, &stripped))
        return has_kernels ? WS_REDIRECT_STRIPPED : WS_REDIRECT_NONE;
    result->stripped_version = stripped.version;
    return collect_stripped(e, &stripped, find, ret, ret_n);
}

int ws_redirect_object(const void *image, size_t bytes, uintptr_t base,
                       void *(*find)(const char *name), struct ws_redirected *ret)
{
    struct ws_elf e;
    struct target *t = NULL;
    size_t n = 0;
    *ret = (struct ws_redirected){0};
    if (ws_elf_init(&e, image, bytes))
        return WS_REDIRECT_NONE;
    int r = find_targets(&e, find, &t, &n, ret);
    if (!r && n)
        qsort(t, n, sizeof(*t), compare_targets);
    /* Runs of functions that lie close together share their changes of protection. */
    for (size_t i = 0, j; !r && i < n; i = j) {
        for (j = i + 1;
             j < n && t[j].value - t[j - 1].value < 16 * PAGE &&
             ws_elf_code_segment(&e, t[j].value, 1) == ws_elf_code_segment(&e, t[i].value, 1);
             j++)
            ;
        r = write_jumps(t + i, j - i, base, &ret->n_failed);
    }
    free(t);
    return r ? r : (int)(n - ret->n_failed);
}

/* ---- all objects ---- */

struct loaded_object {
    uintptr_t base, first, last;
    const void *phdr;
    bool stranger;
    bool own_runtime; /* a static one in a library */
    int toolkit;      /* toolkit.h */
    char *name;
};
static struct loaded_object *objects;
static size_t n_objects, cap_objects;
static unsigned long long n_adds, n_subs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool early, begun;
static atomic_bool copies; /* stays so when the object is unloaded */

static const char *base_name(const char *path)
{
    const char *s = strrchr(path, '/');
    return s ? s + 1 : path;
}

/* Libraries that surely contain no CUDA runtime, or whose symbols the dynamic linker resolves to
 * ours. */
static bool uninteresting(const char *path)
{
    static const char *const prefixes[] = {
        "libc.so",       "libm.so",   "ld-linux",     "linux-vdso",   "libdl.so",
        "libpthread.so", "librt.so",  "libstdc++.so", "libgcc_s.so",  "libprotobuf-c.so",
        "libmd.so",      "libzmq.so", "libcuda.so",   "libcudart.so", "libwattshare.so"};
    const char *name = base_name(path);
    for (size_t i = 0; i < WS_ARRAY_SIZE(prefixes); i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

static void redirect_file(const char *path, struct loaded_object *o, bool is_program)
{
    struct stat st;
    struct ws_redirected result;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    void *image = fstat(fd, &st) == 0 && st.st_size > 0
                      ? mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                      : MAP_FAILED;
    close(fd);
    if (image == MAP_FAILED)
        return;
    if (!is_program)
        ws_variables_keep(image, st.st_size, o->base, o->last, ws_entrypoint_find);
    int r = ws_redirect_object(image, st.st_size, o->base, ws_entrypoint_find, &result);
    o->toolkit = result.stripped_version ? atoi(result.stripped_version)
                                         : ws_toolkit_of_file(image, st.st_size);
    munmap(image, st.st_size);
    if (r == WS_REDIRECT_NONE)
        return;
    char exe[4096];
    ssize_t n = is_program ? readlink(path, exe, sizeof(exe) - 1) : -1;
    if (n > 0) {
        exe[n] = '\0';
        path = exe;
    }
    o->stranger = r < 0 || r == WS_REDIRECT_STRIPPED || result.n_failed;
    if (!o->stranger) {
        o->own_runtime = !is_program;
        if (o->own_runtime)
            atomic_store_explicit(&copies, true, memory_order_relaxed);
        if (begun && !early && !is_program)
            ws_log(WS_WARN,
                   "redirect: %s was loaded while a debugger holds the dynamic linker's hook: what "
                   "its "
                   "constructors registered with its own CUDA runtime is unknown here; "
                   "link it with -cudart shared",
                   path);
        if (ws_debug_on("redirect"))
            ws_log(WS_DEBUG, "redirect: done file=%s entry_points=%d stripped_runtime=%s", path, r,
                   result.stripped_version ? result.stripped_version : "no");
        return;
    }
    if (r == WS_REDIRECT_STRIPPED && !is_program)
        return; /* said when it is used */
    if (r == WS_REDIRECT_STRIPPED)
        ws_log(WS_ERROR, "redirect: %s contains a CUDA runtime but no symbols to find it by: " CURE,
               path);
    else
        ws_log(WS_ERROR, "redirect: %s: its CUDA runtime cannot be redirected (%s): " CURE, path,
               r < 0 ? strerrordesc_np(-r) : "its functions are too short to be patched");
    if (is_program)
        _exit(EXIT_CANNOT_RUN);
}

struct object_scan {
    struct loaded_object *v;
    size_t n, cap, next;
    uintptr_t self;
    bool unchanged;
};

/* The order of the objects stays the same, so the search continues where it last succeeded. */
static const struct loaded_object *known(struct object_scan *s, const struct dl_phdr_info *info)
{
    for (size_t k = 0; k < n_objects; k++) {
        size_t i = (s->next + k) % n_objects;
        if (objects[i].base == info->dlpi_addr && objects[i].phdr == info->dlpi_phdr) {
            s->next = i + 1;
            return &objects[i];
        }
    }
    return NULL;
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct object_scan *s = arg;
    if (s->n == 0 && !s->unchanged) {
        if (objects && info->dlpi_adds == n_adds && info->dlpi_subs == n_subs) {
            s->unchanged = true;
            return 1;
        }
        n_adds = info->dlpi_adds;
        n_subs = info->dlpi_subs;
    }
    bool is_program = s->n == 0;
    if (ws_grow((void **)&s->v, &s->cap, s->n + 1, sizeof(*s->v)))
        return 1;
    struct loaded_object *o = &s->v[s->n++];
    const struct loaded_object *old = known(s, info);
    if (old) {
        *o = *old;
        return 0;
    }
    *o = (struct loaded_object){
        .base = info->dlpi_addr, .phdr = info->dlpi_phdr, .first = UINTPTR_MAX};
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD)
            continue;
        o->first = WS_MIN(o->first, o->base + p->p_vaddr);
        o->last = WS_MAX(o->last, o->base + p->p_vaddr + p->p_memsz);
    }
    bool self = s->self >= o->first && s->self < o->last;
    const char *path = is_program ? "/proc/self/exe" : info->dlpi_name;
    if (self || !path || !path[0])
        return 0;
    if (!is_program && uninteresting(path))
        o->stranger = !strncmp(base_name(path), "libcudart.so",
                               strlen("libcudart.so")); /* never to meet our driver */
    else
        redirect_file(path, o, is_program);
    if (o->stranger)
        o->name = ws_strdup(path);
    return 0;
}

void ws_redirect_scan(void)
{
    struct object_scan s = {.self = (uintptr_t)&ws_redirect_scan};
    pthread_mutex_lock(&lock);
    dl_iterate_phdr(visit, &s);
    if (!s.unchanged) {
        /* Names of unloaded objects without a redirect are kept: somebody may hold one. */
        free(objects);
        objects = s.v;
        n_objects = s.n;
        cap_objects = s.cap;
    }
    pthread_mutex_unlock(&lock);
}

/* The object that holds @address; NULL: none that is known. Lock held. */
static const struct loaded_object *object_of(const void *address)
{
    uintptr_t a = (uintptr_t)address;
    for (size_t i = 0; i < n_objects; i++)
        if (a >= objects[i].first && a < objects[i].last)
            return &objects[i];
    return NULL;
}

const char *ws_redirect_stranger(const void *address)
{
    pthread_mutex_lock(&lock);
    const struct loaded_object *o = object_of(address);
    const char *name = o && o->stranger ? o->name : NULL;
    pthread_mutex_unlock(&lock);
    return name;
}

int ws_redirect_toolkit(const void *address, int *ret_newest)
{
    *ret_newest = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_objects; i++)
        *ret_newest = WS_MAX(*ret_newest, objects[i].toolkit);
    const struct loaded_object *o = object_of(address);
    int own = o ? o->toolkit : 0;
    pthread_mutex_unlock(&lock);
    return own;
}

uintptr_t ws_redirect_runtime(const void *address)
{
    pthread_mutex_lock(&lock);
    const struct loaded_object *o = object_of(address);
    uintptr_t first = o && o->own_runtime ? o->first : 0;
    pthread_mutex_unlock(&lock);
    return first;
}

bool ws_redirect_has_copies(void)
{
    return atomic_load_explicit(&copies, memory_order_relaxed);
}

/* ---- objects loaded later ---- */

static void on_debug_state(void)
{
    if (_r_debug.r_state == RT_CONSISTENT)
        ws_redirect_scan();
}

/* Puts the jump over the dynamic linker's hook for debuggers. */
static bool hook_linker(void)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    uint8_t *p = (uint8_t *)_r_debug.r_brk;
    if (!p)
        return false;
    size_t at = memcmp(p, endbr64, sizeof(endbr64)) ? 0 : sizeof(endbr64);
    if (p[at] != 0xc3 || !padded(p, at + 1))
        return false;
    void *page =
        (void *)((uintptr_t)p & ~(uintptr_t)(PAGE - 1)); /* 16 aligned bytes lie in one page */
    if (mprotect(page, PAGE, PROT_READ | PROT_WRITE))
        return false;
    put_jump(p, (void *)on_debug_state);
    return mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0;
}

bool ws_redirect_early(void)
{
    return early;
}

void ws_redirect_begin(void)
{
    ws_redirect_scan();
    early = hook_linker();
    begun = true;
}

__attribute__((weak)) void *ws_entrypoint_find(const char *name)
{
    return NULL; /* a library without façades, as in unit tests */
}

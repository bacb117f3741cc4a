// SPDX-License-Identifier: Apache-2.0
/* Finds the libraries that a program loads at its start, as ld.so(8) does: in the object's RPATH
 * if it has no RUNPATH, in LD_LIBRARY_PATH, in its RUNPATH, in /etc/ld.so.cache, and then in the
 * system's folders. The RPATH of the object that loaded it is not searched. */
#include "config.h"

#include "cli/coverage/coverage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

/* Libraries that wattshare replaces, and those that run unchanged and need no GPU. */
static bool is_served(const char *name)
{
    static const char *const stems[] = {"libcuda.so",  "libcudart.so",    "libwattshare.so",
                                        "libnvrtc.so", "libnvrtc-",       "libnvJitLink.so",
                                        "libnvvm.so",  "libnvptxcompiler"};
    for (size_t i = 0; i < WS_ARRAY_SIZE(stems); i++)
        if (!strncmp(name, stems[i], strlen(stems[i])))
            return true;
    return false;
}

static bool is_elf(const char *path)
{
    unsigned char h[20];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && read(fd, h, sizeof(h)) == (ssize_t)sizeof(h) &&
              !memcmp(h, ELFMAG, SELFMAG) && h[EI_CLASS] == ELFCLASS64;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* "dir/name" for the first directory of @list ("a:b:…") that has it; $ORIGIN is the folder of
 * @object. */
static char *look_in(const char *list, const char *object, const char *name)
{
    char *real = realpath(object, NULL), *found = NULL;
    if (!real)
        return NULL;
    *strrchr(real, '/') = 0;
    while (list && *list && !found) {
        size_t n = strcspn(list, ":;"), word = 0;
        if (n >= 7 && !strncmp(list, "$ORIGIN", 7))
            word = 7;
        else if (n >= 9 && !strncmp(list, "${ORIGIN}", 9))
            word = 9;
        const char *begin = n ? "" : "."; /* an empty word is the working folder */
        if (word)
            begin = real;
        if (asprintf(&found, "%s%.*s/%s", begin, (int)(n - word), list + word, name) < 0)
            found = NULL;
        if (found && !is_elf(found)) {
            free(found);
            found = NULL;
        }
        list += n + (list[n] != 0);
    }
    free(real);
    return found;
}

/* /etc/ld.so.cache: "glibc-ld.so.cache1.1", u32 entries, …; 48 bytes, then entries {i32 flags,
 * u32 key, u32 value, …} of 24 bytes; key and value are offsets of strings from the start. */
static char *look_in_cache(const char *name)
{
    enum { HEADER = 48, ENTRY = 24, FLAGS_X86_64 = 0x0303 };
    static const char magic[] = "glibc-ld.so.cache1.1";
    struct stat st;
    char *found = NULL;
    int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    size_t bytes = fstat(fd, &st) ? 0 : (size_t)st.st_size;
    const char *p = bytes > HEADER ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (p == MAP_FAILED)
        return NULL;
    uint32_t n = 0;
    if (!memcmp(p, magic, sizeof(magic) - 1))
        memcpy(&n, p + 20, sizeof(n));
    for (uint32_t i = 0; i < n && !found && HEADER + (i + 1ull) * ENTRY <= bytes; i++) {
        uint32_t e[3];
        memcpy(e, p + HEADER + (size_t)i * ENTRY, sizeof(e));
        if (e[0] != FLAGS_X86_64 || e[1] >= bytes || e[2] >= bytes ||
            !memchr(p + e[1], 0, bytes - e[1]) || !memchr(p + e[2], 0, bytes - e[2]))
            continue;
        if (!strcmp(p + e[1], name) && is_elf(p + e[2]))
            found = ws_strdup(p + e[2]);
    }
    munmap((void *)p, bytes);
    return found;
}

struct dynamic {
    const Elf64_Dyn *v;
    uint64_t n;
    const char *strings;
    uint64_t strings_bytes;
};

static const char *string(const struct dynamic *d, uint64_t at)
{
    return at < d->strings_bytes && memchr(d->strings + at, 0, d->strings_bytes - at)
               ? d->strings + at
               : NULL;
}

static bool find_dynamic(const struct ws_elf *e, struct dynamic *ret)
{
    for (uint32_t i = 0; i < e->n_sections; i++) {
        const Elf64_Shdr *s = &e->sections[i];
        if (s->sh_type != SHT_DYNAMIC || s->sh_link >= e->n_sections)
            continue;
        ret->v = ws_elf_contents(e, s, 8);
        ret->n = s->sh_size / sizeof(Elf64_Dyn);
        ret->strings = ws_elf_contents(e, &e->sections[s->sh_link], 1);
        ret->strings_bytes = e->sections[s->sh_link].sh_size;
        return ret->v && ret->strings;
    }
    return false;
}

static char *find(const char *object, const char *name, const char *rpath, const char *runpath)
{
    char *path = NULL;
    if (strchr(name, '/'))
        return is_elf(name) ? ws_strdup(name) : NULL;
    if (!runpath)
        path = look_in(rpath, object, name);
    if (!path)
        path = look_in(getenv("LD_LIBRARY_PATH"), object, name);
    if (!path)
        path = look_in(runpath, object, name);
    if (!path)
        path = look_in_cache(name);
    if (!path)
        path = look_in(
            "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib",
            object, name);
    return path;
}

static int add(struct ws_cover_libs *l, char *path)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->paths[i], path)) {
            free(path);
            return 0;
        }
    if (ws_grow((void **)&l->paths, &l->cap, l->n + 1, sizeof(*l->paths))) {
        free(path);
        return ws_raise(-ENOMEM);
    }
    l->paths[l->n++] = path;
    return 0;
}

int ws_cover_needed(struct ws_cover_libs *l, const char *path, const struct ws_elf *e,
                    char **ret_missing)
{
    struct dynamic d;
    const char *rpath = NULL, *runpath = NULL;
    char *missing = NULL;
    int r = 0;
    *ret_missing = NULL;
    if (!find_dynamic(e, &d))
        return 0;
    for (uint64_t i = 0; i < d.n && d.v[i].d_tag != DT_NULL; i++) {
        if (d.v[i].d_tag == DT_RPATH)
            rpath = string(&d, d.v[i].d_un.d_val);
        if (d.v[i].d_tag == DT_RUNPATH)
            runpath = string(&d, d.v[i].d_un.d_val);
    }
    for (uint64_t i = 0; i < d.n && d.v[i].d_tag != DT_NULL && !r; i++) {
        const char *name = d.v[i].d_tag == DT_NEEDED ? string(&d, d.v[i].d_un.d_val) : NULL;
        if (!name || is_served(name))
            continue;
        char *found = find(path, name, rpath, runpath);
        if (found) {
            r = add(l, found);
            continue;
        }
        char *longer = NULL;
        if (asprintf(&longer, "%s%s\n", missing ? missing : "", name) < 0)
            r = ws_raise(-ENOMEM);
        else {
            free(missing);
            missing = longer;
        }
    }
    if (r) {
        free(missing);
        return r;
    }
    *ret_missing = missing;
    return 0;
}

void ws_cover_libs_deinit(struct ws_cover_libs *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->paths[i]);
    free(l->paths);
    *l = (struct ws_cover_libs){0};
}

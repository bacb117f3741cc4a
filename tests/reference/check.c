// SPDX-License-Identifier: Apache-2.0
/* Usage: check FILE… recomputes reference files with the library and prints what differs. A folder
 * stands for the files in it. Exit status: 0 if nothing differs; 1 if something does or a file
 * could not be checked; 2 for wrong usage. Files of an unknown kind are named; with --all-known
 * they count as failures, so that a file whose kind nobody checks does not look checked; with
 * --first, a file of lines is read no further than to the first line in which something differs. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macros.h"
#include "tests/reference/check.h"

enum { SHOWN_MAX = 10 };
static bool first_only;

#define WS_CHECK_KIND(symbol) extern const struct ws_check_kind ws_check_kind_##symbol;
#include "tests/reference/kinds.def"
#undef WS_CHECK_KIND

static const struct ws_check_kind *const kinds[] = {
#define WS_CHECK_KIND(symbol) &ws_check_kind_##symbol,
#include "tests/reference/kinds.def"
#undef WS_CHECK_KIND
    NULL};

const char *ws_check_where(const char *fmt, ...)
{
    static char text[4][200];
    static unsigned next;
    char *s = text[next++ % WS_ARRAY_SIZE(text)];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s, sizeof(text[0]), fmt, ap);
    va_end(ap);
    return s;
}

bool ws_check_has(struct ws_json_line *first, const char *const *keys)
{
    if (first->bad || !first->root)
        return false;
    struct ws_json_at root = ws_json_root(first);
    for (; *keys; keys++)
        if (!ws_json_has(&root, *keys))
            return false;
    return true;
}

double ws_check_value(const struct ws_json_at *at, const char *key)
{
    return ws_json_number(at, key, -1e18, 1e18, NAN);
}

static bool show(struct ws_check *c)
{
    c->n_different++;
    return c->n_shown++ < SHOWN_MAX;
}

void ws_check_integer(struct ws_check *c, const char *where, int64_t ours, int64_t reference)
{
    if (ours == reference)
        c->n_equal++;
    else if (show(c))
        printf("  %s: %" PRId64 ", reference %" PRId64 "\n", where, ours, reference);
}

void ws_check_bool(struct ws_check *c, const char *where, bool ours, bool reference)
{
    ws_check_text(c, where, ours ? "true" : "false", reference ? "true" : "false");
}

void ws_check_text(struct ws_check *c, const char *where, const char *ours, const char *reference)
{
    if (!strcmp(ours, reference))
        c->n_equal++;
    else if (show(c))
        printf("  %s: %s, reference %s\n", where, ours, reference);
}

void ws_check_number(struct ws_check *c, const char *where, double ours, double reference,
                     double relative, double absolute)
{
    double apart = fabs(ours - reference);
    if (ours == reference)
        c->n_equal++;
    else if (apart <= fmax(absolute, relative * fabs(reference)))
        c->n_within++;
    else if (show(c))
        printf("  %s: %.10g, reference %.10g, %.3g apart (%.3g of it)\n", where, ours, reference,
               apart, apart / fabs(reference));
}

void ws_check_fail(struct ws_check *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "check: %s: ", c->path);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    c->failed = true;
}

void ws_check_lines(struct ws_check *c,
                    void (*work)(struct ws_check *c, struct ws_json_line *l, void *arg), void *arg)
{
    FILE *f = fopen(c->path, "r");
    if (!f) {
        ws_check_fail(c, "%s", strerror(errno));
        return;
    }
    struct ws_jsonl r;
    ws_jsonl_init(&r, f, c->path);
    struct ws_json_line l;
    int e = 0;
    while (!(first_only && c->n_different) && !(e = ws_jsonl_next(&r, &l))) {
        c->n_lines++;
        if (!l.bad)
            work(c, &l, arg);
        if (!ws_json_line_report(&l, stderr, "check"))
            c->failed = true;
        ws_json_line_deinit(&l);
    }
    if (e && e != WS_JSONL_END)
        ws_check_fail(c, "%s", strerror(-e));
    ws_jsonl_deinit(&r);
    fclose(f);
}

/* The kind of @path, or NULL. */
static const struct ws_check_kind *recognise(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    char *head = NULL;
    size_t cap = 0;
    ssize_t n = getline(&head, &cap, f);
    fclose(f);
    if (n <= 0) {
        free(head);
        return NULL;
    }
    head[strcspn(head, "\r\n")] = 0;
    struct ws_json_line first = {.file = path, .number = 1};
    struct ws_jsonl r;
    f = fopen(path, "r");
    ws_jsonl_init(&r, f, path);
    if (!f || ws_jsonl_next(&r, &first))
        first.bad = true;
    ws_jsonl_deinit(&r);
    if (f)
        fclose(f);
    if (first.bad) { /* not an object on one line: perhaps the whole file is one */
        ws_json_line_deinit(&first);
        if (ws_json_file(path, &first) || first.bad) {
            ws_json_line_deinit(&first);
            first = (struct ws_json_line){.file = path, .number = 1, .bad = true};
        }
    }
    const struct ws_check_kind *found = NULL;
    for (size_t i = 0; kinds[i] && !found; i++)
        if (kinds[i]->match(head, &first))
            found = kinds[i];
    ws_json_line_deinit(&first);
    free(head);
    return found;
}

struct total {
    uint64_t n_files, n_unknown, n_bad;
};

static void check_file(const char *path, struct total *t)
{
    const struct ws_check_kind *kind = recognise(path);
    if (!kind) {
        printf("%s: no kind of file that is known here\n", path);
        t->n_unknown++;
        return;
    }
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    else
        strcpy(folder, ".");
    struct ws_check c = {.path = path, .folder = folder};
    kind->check(&c);
    if (!c.failed && !(c.n_equal + c.n_within + c.n_different))
        ws_check_fail(&c, "nothing in it was compared");
    printf("%s: %s: %" PRIu64 " equal, %" PRIu64 " within tolerance, %" PRIu64 " different%s\n",
           path, kind->name, c.n_equal, c.n_within, c.n_different,
           c.failed ? "; could not be checked wholly" : "");
    fflush(stdout);
    t->n_files++;
    t->n_bad += c.failed || c.n_different;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int visible(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

static void check_path(const char *path, struct total *t)
{
    struct stat st;
    if (stat(path, &st)) {
        fprintf(stderr, "check: %s: %s\n", path, strerror(errno));
        t->n_bad++;
        return;
    }
    if (!S_ISDIR(st.st_mode)) {
        check_file(path, t);
        return;
    }
    struct dirent **list;
    int n = scandir(path, &list, visible, by_name);
    for (int i = 0; i < n; i++) {
        char below[PATH_MAX];
        size_t len = strlen(list[i]->d_name);
        bool text = len > 3 && !strcmp(list[i]->d_name + len - 3, ".md");
        if (!text &&
            (size_t)snprintf(below, sizeof(below), "%s/%s", path, list[i]->d_name) < sizeof(below))
            check_path(below, t);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
}

int main(int argc, char **argv)
{
    bool all_known = argc > 1 && !strcmp(argv[1], "--all-known");
    first_only = argc > 1 && !strcmp(argv[1], "--first");
    int first = all_known || first_only ? 2 : 1;
    if (argc <= first) {
        fprintf(stderr, "usage: check [--all-known | --first] FILE-OR-FOLDER…\n");
        return 2;
    }
    struct total t = {0};
    for (int i = first; i < argc; i++)
        check_path(argv[i], &t);
    printf("%" PRIu64 " files checked, %" PRIu64 " with differences, %" PRIu64 " of unknown kind\n",
           t.n_files, t.n_bad, t.n_unknown);
    return t.n_bad || (all_known && t.n_unknown) || !t.n_files;
}

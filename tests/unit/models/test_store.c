// SPDX-License-Identifier: Apache-2.0
/* models: the store of profiles: what is put comes back, bad files and lines are refused, readers
 * and a writer get along. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "models/store.h"

struct fixture {
    char folder[64], path[96];
    struct ws_store *s;
    struct ws_diags diags;
    struct ws_profile p, q;
    char *text;
    size_t len;
};

static int setup(void **state)
{
    struct fixture *x = calloc(1, sizeof(*x));
    snprintf(x->folder, sizeof(x->folder), "%s/store-XXXXXX",
             getenv("TMPDIR") && strlen(getenv("TMPDIR")) < 40 ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(x->folder))
        return -1;
    snprintf(x->path, sizeof(x->path), "%s/p.db", x->folder);
    *state = x;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    ws_store_close(x->s);
    ws_diags_deinit(&x->diags);
    ws_profile_deinit(&x->p);
    ws_profile_deinit(&x->q);
    free(x->text);
    unlink(x->path);
    char more[128];
    snprintf(more, sizeof(more), "%s-journal", x->path);
    unlink(more);
    rmdir(x->folder);
    free(x);
    return 0;
}

static void open_for(struct fixture *x, int mode)
{
    x->s = ws_store_close(x->s);
    assert_int_equal(ws_store_open(&x->s, x->path, mode, &x->diags), 0);
}

/* awkward numbers: they must come back bit for bit */
static void fill(struct ws_profile *p, const char *hash, const char *gpu)
{
    *p = WS_PROFILE_NULL;
    assert_int_equal(ws_profile_key_set(&p->key, hash, gpu, "48x1x1/256x1x1"), 0);
    strcpy(p->name, "_Z3addPfS_, \"quoted\" größer");
    p->has = WS_PROFILE_MODEL | WS_PROFILE_COPIES | WS_PROFILE_DVFS | WS_PROFILE_CPU;
    p->kernel = (struct ws_mwp_kernel){256, 48, 3, 1.0 / 3, 0.1, 1e-300, 31.999999999999996, 0};
    p->h2d_ms = nextafter(1, 2);
    p->d2h_ms = DBL_MIN;
    p->in_bytes = UINT64_C(1) << 52;
    p->out_bytes = 7;
    p->dvfs.p0 = 100.1;
    p->dvfs.gamma = 2.0 / 3;
    p->dvfs.c = 1e14;
    p->dvfs.t0 = 0;
    p->dvfs.d = 25;
    p->dvfs.delta = 0.5;
    p->cpu_ms = 12.5;
    p->cpu_mj = 1e6 / 7;
    for (int i = 1; i <= 5; i++) {
        ws_stat_add(&p->time_error, 0.1 / i);
        ws_stat_add(&p->power_error, -0.3 / i);
    }
    for (uint32_t sm = 30; sm >= 10; sm -= 10)
        for (int run = 0; run < 4; run++)
            assert_int_equal(
                ws_profile_add_run(p, sm, 10.0 / sm + run / 7.0, run ? 100 + run / 3.0 : NAN), 0);
}

static void same(const struct ws_profile *a, const struct ws_profile *b)
{
    assert_int_equal(a->n_points, b->n_points);
    for (uint32_t i = 0; i < a->n_points; i++)
        assert_memory_equal(&a->points[i], &b->points[i], sizeof(a->points[i]));
    struct ws_profile x = *a, y = *b;
    x.points = y.points = NULL;
    x.cap_points = y.cap_points = 0;
    assert_string_equal(x.name, y.name);
    memset(x.name, 0, sizeof(x.name));
    memset(y.name, 0, sizeof(y.name));
    assert_memory_equal(&x, &y, sizeof(x));
}

static void comes_back(void **state)
{
    struct fixture *x = *state;
    fill(&x->p, "0123abcd", "rtx3070");
    open_for(x, WS_STORE_WRITE);
    assert_int_equal(ws_store_put(x->s, &x->p), 0);
    open_for(x, WS_STORE_READ);
    assert_int_equal(ws_store_get(x->s, &x->p.key, &x->q), 0);
    same(&x->p, &x->q);
    struct ws_profile_key other = x->p.key;
    strcpy(other.gpu, "t400");
    assert_int_equal(ws_store_get(x->s, &other, &x->q), WS_STORE_E_NOTFOUND);
    assert_int_equal(ws_store_put(x->s, &x->p), -EACCES); /* opened for reading */
}

static void replaced_and_removed(void **state)
{
    struct fixture *x = *state;
    fill(&x->p, "aa", "t400");
    open_for(x, WS_STORE_WRITE);
    assert_int_equal(ws_store_put(x->s, &x->p), 0);
    x->p.n_points = 1; /* fewer points than before: the others must go */
    x->p.has = 0;
    assert_int_equal(ws_store_put(x->s, &x->p), 0);
    assert_int_equal(ws_store_get(x->s, &x->p.key, &x->q), 0);
    assert_int_equal(x->q.n_points, 1);
    assert_int_equal(x->q.has, 0);
    assert_true(x->q.cpu_ms == 0);
    ws_profile_deinit(&x->q);
    assert_int_equal(ws_store_remove(x->s, &x->p.key), 0);
    assert_int_equal(ws_store_remove(x->s, &x->p.key), WS_STORE_E_NOTFOUND);
    assert_int_equal(ws_store_get(x->s, &x->p.key, &x->q), WS_STORE_E_NOTFOUND);
}

static void transactions(void **state)
{
    struct fixture *x = *state;
    fill(&x->p, "aa", "t400");
    open_for(x, WS_STORE_WRITE);
    assert_int_equal(ws_store_begin(x->s), 0);
    assert_int_equal(ws_store_put(x->s, &x->p), 0);
    assert_int_equal(ws_store_commit(x->s, false), 0);
    assert_int_equal(ws_store_get(x->s, &x->p.key, &x->q), WS_STORE_E_NOTFOUND);
    assert_int_equal(ws_store_begin(x->s), 0);
    assert_int_equal(ws_store_put(x->s, &x->p), 0);
    open_for(x, WS_STORE_READ); /* closed before its end: nothing stays */
    assert_int_equal(ws_store_get(x->s, &x->p.key, &x->q), WS_STORE_E_NOTFOUND);
}

static void runs_add_up(void **state)
{
    struct fixture *x = *state;
    const double t[] = {3, 1, 4, 1, 5, 9, 2, 6};
    assert_int_equal(ws_profile_key_set(&x->p.key, "h", "g", ""), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(ws_profile_add_run(&x->p, 4, t[i], i % 2 ? 50 + i : NAN), 0);
    const struct ws_profile_point *q = ws_profile_at(&x->p, 4);
    assert_int_equal(q->n_runs, 8);
    assert_true(q->time_max_ms == 9 && q->time_min_ms == 1);
    assert_true(fabs(q->time_mean_ms - 31.0 / 8) < 1e-12);
    assert_true(fabs(q->time_m2 / 7 - (173 - 31.0 * 31 / 8) / 7) < 1e-12);
    assert_int_equal(q->n_powers, 4);
    assert_true(fabs(q->power_w - 54) < 1e-12);
    assert_null(ws_profile_at(&x->p, 5));
    assert_int_equal(ws_profile_add_run(&x->p, 0, 1, NAN), -EINVAL);
    assert_int_equal(ws_profile_add_run(&x->p, 1, 0, NAN), -EINVAL);
    assert_int_equal(ws_profile_add_run(&x->p, 1, NAN, NAN), -EINVAL);
    assert_int_equal(ws_profile_add_run(&x->p, 1, 1, -3), -EINVAL);
    assert_int_equal(ws_profile_add_run(&x->p, 1, 1, 2), 0);
    assert_int_equal(x->p.points[0].n_sms, 1); /* kept in order */
    for (int i = 0; i < 3; i++)                /* equal times: the mean stays between them */
        assert_int_equal(ws_profile_add_run(&x->p, 2, 0.1, NAN), 0);
    assert_int_equal(ws_profile_check(&x->p, NULL, 0, NULL), 0);
}

static void errors_are_learnt(void **state)
{
    struct ws_stat s = {0};
    assert_true(ws_profile_correction(&s) == 1);
    ws_profile_add_error(&s, 80, 100);
    assert_true(fabs(s.mean + 0.2) < 1e-12);
    assert_true(fabs(ws_profile_correction(&s) - 1.25) < 1e-12);
    ws_profile_add_error(&s, 0, 100); /* no prediction: not counted */
    ws_profile_add_error(&s, NAN, 100);
    ws_profile_add_error(&s, 1, INFINITY);
    assert_int_equal(s.n, 1);
    ws_profile_add_error(&s, 120, 100);
    assert_true(fabs(s.mean) < 1e-12 && fabs(ws_stat_variance(&s) - 0.08) < 1e-12);
    s = (struct ws_stat){1, 1e9, 0};
    assert_true(ws_profile_correction(&s) == 0.1); /* no single wild run may silence a kernel */
}

static char *export_text(struct fixture *x, size_t *ret_len)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, ret_len);
    assert_int_equal(ws_store_export(x->s, f), 0);
    fclose(f);
    return text;
}

static int import_text(struct fixture *x, const char *text, struct ws_store_import *done)
{
    FILE *f = fmemopen((void *)text, strlen(text), "r");
    ws_diags_deinit(&x->diags);
    x->diags = WS_DIAGS_NULL;
    int r = ws_store_import(x->s, f, "in.csv", done, &x->diags);
    fclose(f);
    return r;
}

static void csv_round_trip(void **state)
{
    struct fixture *x = *state;
    open_for(x, WS_STORE_WRITE);
    static const char *const gpus[] = {"gtx970", "rtx3070", "t400"};
    for (int i = 0; i < 3; i++) {
        fill(&x->p, i ? "0123" : "4567", gpus[i]);
        if (i == 1)
            x->p.n_points = 0; /* a profile without points keeps its line */
        if (i == 2)
            x->p.has = WS_PROFILE_DVFS;
        if (i == 2) {
            memset(&x->p.kernel, 0, sizeof(x->p.kernel));
            x->p.h2d_ms = x->p.d2h_ms = x->p.cpu_ms = x->p.cpu_mj = 0;
            x->p.in_bytes = x->p.out_bytes = 0;
        }
        assert_int_equal(ws_store_put(x->s, &x->p), 0);
        if (i < 2)
            ws_profile_deinit(&x->p);
    }
    x->text = export_text(x, &x->len);
    x->s = ws_store_close(x->s);
    unlink(x->path);
    open_for(x, WS_STORE_WRITE);
    struct ws_store_import done;
    assert_int_equal(import_text(x, x->text, &done), 0);
    assert_int_equal(done.n_profiles, 3);
    assert_int_equal(done.n_points, 6);
    assert_int_equal(done.n_bad_lines, 0);
    size_t len;
    char *again = export_text(x, &len);
    bool equal = !strcmp(x->text, again);
    free(again);
    assert_true(equal);
    assert_int_equal(ws_store_get(x->s, &x->p.key, &x->q), 0);
    same(&x->p, &x->q);
}

/* A good file, then one thing wrong in it. */
static const char head[] =
    "version,hash,gpu,shape,name,threads_per_block,n_blocks,blocks_per_sm,comp_insts,coal_insts,"
    "uncoal_insts,uncoal_per_mw,synch_insts,h2d_ms,d2h_ms,in_bytes,out_bytes,dvfs_p0_w,dvfs_gamma_"
    "w,"
    "dvfs_c_w,dvfs_t0_ms,dvfs_d_ms,dvfs_delta,cpu_ms,cpu_mj,time_error_n,time_error_mean,"
    "time_error_m2,power_error_n,power_error_mean,power_error_m2,n_sms,n_runs,time_max_ms,"
    "time_mean_ms,time_min_ms,time_m2,n_powers,power_w\n";
#define REST   "4,10,3,2,1,0.5,0,0"
#define KERNEL ",,,,,,,,,1,2,3,4,,,,,,,,,,,,,,,"

static void csv_bad_lines(void **state)
{
    struct fixture *x = *state;
    static const struct {
        const char *description, *line, *says;
    } rows[] = {
        {"not a number", "1,aa,t400,,n" KERNEL "4,10,3,x,1,0.5,0,0\n",
         "in.csv:2:35: time_mean_ms is 'x'"},
        {"negative", "1,aa,t400,,n" KERNEL "4,10,-3,2,1,0.5,0,0\n", "time_max_ms is '-3'"},
        {"infinite", "1,aa,t400,,n" KERNEL "4,10,inf,2,1,0.5,0,0\n", "time_max_ms"},
        {"nan", "1,aa,t400,,n" KERNEL "4,10,nan,2,1,0.5,0,0\n", "time_max_ms"},
        {"zero SMs", "1,aa,t400,,n" KERNEL "0,10,3,2,1,0.5,0,0\n", "n_sms is '0'"},
        {"not whole", "1,aa,t400,,n" KERNEL "4.5,10,3,2,1,0.5,0,0\n", "whole number"},
        {"blank before", "1,aa,t400,,n" KERNEL " 4,10,3,2,1,0.5,0,0\n", "n_sms is ' 4'"},
        {"wraps", "1,aa,t400,,n" KERNEL "4,-1,3,2,1,0.5,0,0\n", "n_runs is '-1'"},
        {"order", "1,aa,t400,,n" KERNEL "4,10,1,2,3,0.5,0,0\n", "must hold"},
        {"half a part", "1,aa,t400,,n,256,,,,,,,,1,2,3,4,,,,,,,,,,,,,,," REST "\n",
         "give all or none"},
        {"half a point", "1,aa,t400,,n" KERNEL "4,10,3,,,,,\n", "time_mean_ms is ''"},
        {"few fields", "1,aa,t400\n", "3 fields where there must be 39"},
        {"hash", "1,a a,t400,,n" KERNEL REST "\n", "letters"},
        {"no gpu", "1,aa,,,n" KERNEL REST "\n", "must be there"},
        {"long hash",
         "1,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,t400,,n" KERNEL
             REST "\n",
         "hash is longer than 64"},
        {"open quote", "1,aa,t400,,\"n" KERNEL REST "\n", "quoted field must end"},
        {"quote inside", "1,aa,t400,,n\"n" KERNEL REST "\n", "quote inside"},
        {"version", "x,aa,t400,,n" KERNEL REST "\n", "version is 'x'"},
        {"twice", "1,aa,t400,,n" KERNEL REST "\n1,aa,t400,,n" KERNEL REST "\n",
         "n_sms 4 stands there twice"},
        {"contradiction", "1,aa,t400,,n" KERNEL REST "\n1,aa,t400,,m" KERNEL "5,10,3,2,1,0.5,0,0\n",
         "in.csv:3: name differs"},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        open_for(x, WS_STORE_WRITE);
        char text[4096];
        /* the good line after it is taken all the same */
        snprintf(text, sizeof(text), "%s%s1,bb,t400,,good" KERNEL REST "\n", head, rows[i].line);
        struct ws_store_import done;
        int r = import_text(x, text, &done);
        char *said = ws_diags_text(&x->diags);
        bool ok = r == 0 && done.n_profiles == 1 && done.n_bad_lines == 1 && said &&
                  strstr(said, rows[i].says);
        if (!ok)
            print_error("%s: r %d, %d taken, %d bad, said: %s\n", rows[i].description, r,
                        (int)done.n_profiles, (int)done.n_bad_lines, said);
        free(said);
        assert_true(ok);
        struct ws_profile_key key;
        assert_int_equal(ws_profile_key_set(&key, "aa", "t400", ""), 0);
        assert_int_equal(ws_store_get(x->s, &key, &x->q), WS_STORE_E_NOTFOUND);
        x->s = ws_store_close(x->s);
        unlink(x->path);
    }
}

static void csv_refused_files(void **state)
{
    struct fixture *x = *state;
    struct ws_store_import done;
    open_for(x, WS_STORE_WRITE);
    char text[4096];
    snprintf(text, sizeof(text), "%s2,aa,t400,,n" KERNEL REST "\n", head);
    assert_int_equal(import_text(x, text, &done), WS_STORE_E_NEWER);
    assert_non_null(strstr(x->diags.v[0].text, "newer"));
    snprintf(text, sizeof(text), "version,hash,more\n2,aa,1\n");
    assert_int_equal(import_text(x, text, &done), WS_STORE_E_NEWER);
    assert_int_equal(import_text(x, "a,b,c\n1,2,3\n", &done), WS_STORE_E_FORMAT);
    assert_non_null(strstr(x->diags.v[0].text, "first line"));
    assert_int_equal(import_text(x, "\n", &done), WS_STORE_E_FORMAT);
    /* what spreadsheets do to a file is fine */
    snprintf(text, sizeof(text),
             "\xef\xbb\xbf%.*s\r\n\"1\",\"aa\",t400,,\"a \"\"b\"\", c\"" KERNEL REST "\r\n\r\n",
             (int)strlen(head) - 1, head);
    assert_int_equal(import_text(x, text, &done), 0);
    assert_int_equal(done.n_profiles, 1);
    struct ws_profile_key key;
    assert_int_equal(ws_profile_key_set(&key, "aa", "t400", ""), 0);
    assert_int_equal(ws_store_get(x->s, &key, &x->q), 0);
    assert_string_equal(x->q.name, "a \"b\", c");
    assert_int_equal(x->q.has, WS_PROFILE_COPIES);
}

static void sql(const char *path, const char *text)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void refuse(struct fixture *x, int mode, int want, const char *says)
{
    ws_diags_deinit(&x->diags);
    x->diags = WS_DIAGS_NULL;
    assert_int_equal(ws_store_open(&x->s, x->path, mode, &x->diags), want);
    assert_int_equal(x->diags.n, 1);
    if (!strstr(x->diags.v[0].text, says))
        fail_msg("'%s' does not say '%s'", x->diags.v[0].text, says);
}

static void bad_files(void **state)
{
    struct fixture *x = *state;
    refuse(x, WS_STORE_READ, -ENOENT, "No such file");
    FILE *f = fopen(x->path, "w");
    fclose(f);
    refuse(x, WS_STORE_READ, WS_STORE_E_FORMAT, "empty");
    f = fopen(x->path, "w");
    for (int i = 0; i < 1000; i++)
        fputs("no database at all\n", f);
    fclose(f);
    refuse(x, WS_STORE_READ, WS_STORE_E_FORMAT, "not a store");
    refuse(x, WS_STORE_WRITE, WS_STORE_E_FORMAT, "not a store");
    unlink(x->path);
    sql(x->path, "CREATE TABLE contacts (name)");
    refuse(x, WS_STORE_WRITE, WS_STORE_E_FORMAT, "not a store of profiles");
    unlink(x->path);
    open_for(x, WS_STORE_WRITE);
    fill(&x->p, "aa", "t400");
    assert_int_equal(ws_store_put(x->s, &x->p), 0);
    x->s = ws_store_close(x->s);
    sql(x->path, "PRAGMA user_version = 2");
    refuse(x, WS_STORE_WRITE, WS_STORE_E_NEWER, "newer wattshare: its schema is 2");
    sql(x->path, "PRAGMA user_version = 1; ALTER TABLE points RENAME COLUMN power_w TO watts");
    refuse(x, WS_STORE_READ, WS_STORE_E_FORMAT, "damaged");
    sql(x->path, "ALTER TABLE points RENAME COLUMN watts TO power_w");
    open_for(x, WS_STORE_READ); /* as it was */
    /* values no program of ours writes */
    static const char *const lies[] = {
        "UPDATE profiles SET threads_per_block = -1", "UPDATE profiles SET dvfs_delta = 'much'",
        "UPDATE profiles SET h2d_ms = NULL", "UPDATE points SET time_max_ms = -1 WHERE n_sms = 10",
        "UPDATE profiles SET name = printf('%300d', 1)"};
    for (size_t i = 0; i < WS_ARRAY_SIZE(lies); i++) {
        x->s = ws_store_close(x->s);
        unlink(x->path);
        open_for(x, WS_STORE_WRITE);
        assert_int_equal(ws_store_put(x->s, &x->p), 0);
        x->s = ws_store_close(x->s);
        sql(x->path, lies[i]);
        open_for(x, WS_STORE_READ);
        int r = ws_store_get(x->s, &x->p.key, &x->q);
        if (r != WS_STORE_E_FORMAT || !strstr(ws_store_error(x->s), "damaged"))
            fail_msg("%s: %d, %s", lies[i], r, ws_store_error(x->s));
    }
}

/* Any byte may be wrong: opening or reading says so, or gives what was there; nothing crashes. */
static void damaged_bytes(void **state)
{
    struct fixture *x = *state;
    open_for(x, WS_STORE_WRITE);
    fill(&x->p, "aa", "t400");
    assert_int_equal(ws_store_put(x->s, &x->p), 0);
    x->s = ws_store_close(x->s);
    int fd = open(x->path, O_RDWR);
    off_t size = lseek(fd, 0, SEEK_END);
    unsigned refused = 0, tried = 0;
    for (off_t at = 0; at < size; at += 97) {
        uint8_t byte, other;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        other = byte ^ 0x55;
        assert_int_equal(pwrite(fd, &other, 1, at), 1);
        struct ws_store *s = NULL;
        int r = ws_store_open(&s, x->path, WS_STORE_READ, NULL);
        if (!r) {
            struct ws_profile q = WS_PROFILE_NULL;
            r = ws_store_get(s, &x->p.key, &q);
            ws_profile_deinit(&q);
        }
        ws_store_close(s);
        refused += r != 0;
        tried++;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    /* a free page that isn't there: only the check of the whole file tells */
    assert_int_equal(pwrite(fd, "\1", 1, 39), 1);
    struct ws_store *none = NULL;
    assert_int_equal(ws_store_open(&none, x->path, WS_STORE_READ, NULL), WS_STORE_E_FORMAT);
    assert_int_equal(pwrite(fd, "", 1, 39), 1);
    for (off_t keep = 0; keep < size; keep += 1000) { /* cut short */
        assert_int_equal(ftruncate(fd, size - keep), 0);
        struct ws_store *s = NULL;
        (void)!ws_store_open(&s, x->path, WS_STORE_READ, NULL);
        ws_store_close(s);
    }
    close(fd);
    assert_true(refused > 0 && tried > 50);
}

static int count(void *arg, const struct ws_profile *p)
{
    ++*(int *)arg;
    /* every state of the file has all points with equal times */
    for (uint32_t i = 1; i < p->n_points; i++)
        if (p->points[i].time_max_ms != p->points[0].time_max_ms)
            return -EPROTO;
    return 0;
}

/* Processes that read while one writes: each sees whole profiles only, and nobody fails. */
static void readers_and_a_writer(void **state)
{
    struct fixture *x = *state;
    open_for(x, WS_STORE_WRITE);
    assert_int_equal(ws_profile_key_set(&x->p.key, "aa", "t400", ""), 0);
    x->s = ws_store_close(x->s);
    pid_t readers[3];
    for (int i = 0; i < 3; i++) {
        readers[i] = fork();
        if (readers[i] == 0) {
            for (int k = 0; k < 60; k++) {
                struct ws_store *s = NULL;
                int n = 0;
                if (ws_store_open(&s, x->path, WS_STORE_READ, NULL) || ws_store_each(s, count, &n))
                    _exit(1);
                ws_store_close(s);
            }
            _exit(0);
        }
    }
    open_for(x, WS_STORE_WRITE);
    for (int k = 1; k <= 60; k++) {
        for (uint32_t sm = 1; sm <= 8; sm++) {
            const struct ws_profile_point q = {
                .n_sms = sm, .n_runs = 1, .time_max_ms = k, .time_mean_ms = k, .time_min_ms = k};
            assert_int_equal(ws_profile_put_point(&x->p, &q), 0);
        }
        assert_int_equal(ws_store_put(x->s, &x->p), 0);
    }
    for (int i = 0; i < 3; i++) {
        int status;
        assert_int_equal(waitpid(readers[i], &status, 0), readers[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* Two processes that learn at the same time: no run is lost. */
static void two_writers(void **state)
{
    struct fixture *x = *state;
    open_for(x, WS_STORE_WRITE);
    assert_int_equal(ws_profile_key_set(&x->p.key, "aa", "t400", ""), 0);
    assert_int_equal(ws_store_put(x->s, &x->p), 0);
    x->s = ws_store_close(x->s);
    pid_t writers[2];
    for (int i = 0; i < 2; i++) {
        writers[i] = fork();
        if (writers[i] == 0) {
            struct ws_store *s = NULL;
            if (ws_store_open(&s, x->path, WS_STORE_WRITE, NULL))
                _exit(1);
            for (int k = 0; k < 20; k++) {
                struct ws_profile p;
                if (ws_store_begin(s) || ws_store_get(s, &x->p.key, &p))
                    _exit(3);
                usleep(2000); /* so that both are here at once, if that can be */
                if (ws_profile_add_run(&p, 4, 1 + i, NAN) || ws_store_put(s, &p) ||
                    ws_store_commit(s, true))
                    _exit(2);
                ws_profile_deinit(&p);
            }
            ws_store_close(s);
            _exit(0);
        }
    }
    for (int i = 0; i < 2; i++) {
        int status;
        assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    open_for(x, WS_STORE_READ);
    assert_int_equal(ws_store_get(x->s, &x->p.key, &x->q), 0);
    assert_int_equal(x->q.points[0].n_runs, 40);
    assert_true(fabs(x->q.points[0].time_mean_ms - 1.5) < 1e-12);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(comes_back),    T(replaced_and_removed), T(transactions),
        T(runs_add_up),   T(errors_are_learnt),    T(csv_round_trip),
        T(csv_bad_lines), T(csv_refused_files),    T(bad_files),
        T(damaged_bytes), T(readers_and_a_writer), T(two_writers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

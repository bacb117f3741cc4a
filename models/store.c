// SPDX-License-Identifier: Apache-2.0
/* models/store.c - profiles in a SQLite database.
 *
 * Two tables: profiles (one row for each key) and points (one for each key and SM count); parts
 * that aren't known are NULL. All statements are made from the column tables of profile.c, once, at
 * opening: a file whose tables lack a column fails there, not later. SQLite's rollback journal is
 * kept (not WAL), so that a store is one file that may be copied, and be read by users who may not
 * write beside it. Writers take the lock when they begin, so two never both believe they may write.
 * Schema versions stand in user_version; application_id tells our files from other SQLite files. */
#include "models/store_private.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"

#define APPLICATION_ID  0x57535052 /* "WSPR" */
#define BUSY_TIMEOUT_MS 5000

enum { ST_GET, ST_GET_POINTS, ST_PUT, ST_PUT_POINT, ST_REMOVE, ST_REMOVE_POINTS, ST_EACH, _ST_N };
struct ws_store {
    sqlite3 *db;
    sqlite3_stmt *st[_ST_N];
    bool begun; /* by ws_store_begin() */
    char error[256];
};

static void say(struct ws_store *s, const char *fmt, ...) WS_PRINTF(2, 3);
static void say(struct ws_store *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->error, sizeof(s->error), fmt, ap);
    va_end(ap);
}

/* SQLite's result as ours. */
static int outcome(struct ws_store *s, int e)
{
    say(s, "%s", sqlite3_errmsg(s->db));
    switch (e & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return 0;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        say(s, "another process keeps it locked");
        return WS_STORE_E_BUSY;
    case SQLITE_CORRUPT:
        say(s, "the file is damaged (%s)", sqlite3_errmsg(s->db));
        return WS_STORE_E_FORMAT;
    case SQLITE_NOTADB:
        say(s, "not a store of profiles (not a SQLite file)");
        return WS_STORE_E_FORMAT;
    case SQLITE_NOMEM:
        return ws_raise(-ENOMEM);
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return ws_raise(-EACCES);
    case SQLITE_FULL:
        return ws_raise(-ENOSPC);
    default:
        return ws_raise(-EIO);
    }
}

const char *ws_store_error(const struct ws_store *s)
{
    return s->error;
}

static int run(struct ws_store *s, const char *sql)
{
    return outcome(s, sqlite3_exec(s->db, sql, NULL, NULL, NULL));
}

static int ask_integer(struct ws_store *s, const char *sql, int64_t *ret)
{
    sqlite3_stmt *st = NULL;
    int e = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);
    if (e == SQLITE_OK)
        e = sqlite3_step(st);
    if (e == SQLITE_ROW)
        *ret = sqlite3_column_int64(st, 0);
    int r = outcome(s, e);
    sqlite3_finalize(st);
    return r;
}

/* ---- statements, from the tables of columns ---- */

static void put_names(FILE *f, const struct ws_column *c, const char *fmt)
{
    for (bool first = true; c->name; c++, first = false) {
        if (!first)
            fputc(',', f);
        fprintf(f, fmt, c->name);
    }
}

static void put_declarations(FILE *f, const struct ws_column *c)
{
    static const char *const types[] = {"TEXT", "INTEGER", "INTEGER", "REAL"};
    for (; c->name; c++)
        fprintf(f, "%s %s%s, ", c->name, types[c->type], c->part ? "" : " NOT NULL");
}

static char *make_schema(void)
{
    char *sql = NULL;
    size_t len;
    FILE *f = open_memstream(&sql, &len);
    if (!f)
        return NULL;
    fputs("CREATE TABLE profiles (", f);
    put_declarations(f, ws_profile_columns);
    fputs("PRIMARY KEY (hash, gpu, shape)) WITHOUT ROWID;"
          "CREATE TABLE points (hash TEXT NOT NULL, gpu TEXT NOT NULL, shape TEXT NOT NULL, ",
          f);
    put_declarations(f, ws_point_columns);
    fprintf(f,
            "PRIMARY KEY (hash, gpu, shape, n_sms)) WITHOUT ROWID;"
            "PRAGMA application_id = %d; PRAGMA user_version = %d;",
            APPLICATION_ID, WS_STORE_SCHEMA);
    return fclose(f) ? free(sql), NULL : sql;
}

static char *make_statement(int which)
{
    static const char key[] = " WHERE hash = ?1 AND gpu = ?2 AND shape = ?3";
    char *sql = NULL;
    size_t len;
    FILE *f = open_memstream(&sql, &len);
    if (!f)
        return NULL;
    switch (which) {
    case ST_GET:
    case ST_EACH:
        fputs("SELECT ", f);
        put_names(f, ws_profile_columns, "%s");
        fprintf(f, " FROM profiles%s", which == ST_GET ? key : " ORDER BY hash, gpu, shape");
        break;
    case ST_GET_POINTS:
        fputs("SELECT ", f);
        put_names(f, ws_point_columns, "%s");
        fprintf(f, " FROM points%s ORDER BY n_sms", key);
        break;
    case ST_PUT:
        fputs("INSERT OR REPLACE INTO profiles (", f);
        put_names(f, ws_profile_columns, "%s");
        fputs(") VALUES (", f);
        put_names(f, ws_profile_columns, ":%s");
        fputc(')', f);
        break;
    case ST_PUT_POINT:
        fputs("INSERT INTO points (hash, gpu, shape, ", f);
        put_names(f, ws_point_columns, "%s");
        fputs(") VALUES (?1, ?2, ?3, ", f);
        put_names(f, ws_point_columns, ":%s");
        fputc(')', f);
        break;
    case ST_REMOVE:
        fprintf(f, "DELETE FROM profiles%s", key);
        break;
    case ST_REMOVE_POINTS:
        fprintf(f, "DELETE FROM points%s", key);
        break;
    default:
        break;
    }
    return fclose(f) ? free(sql), NULL : sql;
}

/* ---- opening ---- */

static int make_tables(struct ws_store *s)
{
    int64_t version = 0;
    int r = run(s, "BEGIN IMMEDIATE");
    if (r)
        return r;
    r = ask_integer(s, "PRAGMA user_version", &version);
    if (!r && !version) { /* nobody was quicker */
        char *sql = make_schema();
        r = sql ? run(s, sql) : ws_raise(-ENOMEM);
        free(sql);
    }
    if (!r)
        return run(s, "COMMIT");
    (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL); /* what went wrong before counts */
    return r;
}

static int check_identity(struct ws_store *s, int mode)
{
    int64_t id = 0, version = 0, n_tables = 0;
    int r = ask_integer(s, "PRAGMA application_id", &id);
    if (!r)
        r = ask_integer(s, "PRAGMA user_version", &version);
    if (!r)
        r = ask_integer(s, "SELECT count(*) FROM sqlite_master", &n_tables);
    if (r)
        return r;
    if (!id && !version && !n_tables) {
        if (mode == WS_STORE_WRITE)
            return make_tables(s);
        say(s, "the file is empty, not a store of profiles");
        return WS_STORE_E_FORMAT;
    }
    if (id != APPLICATION_ID) {
        say(s, "a SQLite file, but not a store of profiles");
        return WS_STORE_E_FORMAT;
    }
    if (version > WS_STORE_SCHEMA) {
        say(s,
            "written by a newer wattshare: its schema is %" PRId64 ", this one knows up to %d; "
            "upgrade, or exchange it as CSV",
            version, WS_STORE_SCHEMA);
        return WS_STORE_E_NEWER;
    }
    if (version != WS_STORE_SCHEMA) {
        say(s, "the file is damaged (schema %" PRId64 ")", version);
        return WS_STORE_E_FORMAT;
    }
    return 0;
}

static int check_damage(struct ws_store *s)
{
    sqlite3_stmt *st = NULL;
    int e = sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &st, NULL);
    if (e == SQLITE_OK)
        e = sqlite3_step(st);
    int r = outcome(s, e);
    const char *text = e == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
    if (!r && (!text || strcmp(text, "ok"))) {
        say(s, "the file is damaged (%s)", text ? text : "no answer");
        r = WS_STORE_E_FORMAT;
    }
    sqlite3_finalize(st);
    return r;
}

static int prepare_all(struct ws_store *s)
{
    for (int i = 0; i < _ST_N; i++) {
        char *sql = make_statement(i);
        if (!sql)
            return ws_raise(-ENOMEM);
        int e = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->st[i], NULL);
        free(sql);
        if (e == SQLITE_ERROR) { /* a table or column is missing */
            say(s, "the file is damaged (%s)", sqlite3_errmsg(s->db));
            return WS_STORE_E_FORMAT;
        }
        if (e)
            return outcome(s, e);
    }
    return 0;
}

struct ws_store *ws_store_close(struct ws_store *s)
{
    if (!s)
        return NULL;
    if (s->begun)
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    for (int i = 0; i < _ST_N; i++)
        sqlite3_finalize(s->st[i]);
    sqlite3_close(s->db);
    free(s);
    return NULL;
}

int ws_store_open(struct ws_store **ret, const char *path, int mode, struct ws_diags *diags)
{
    struct ws_store *s = ws_alloc(sizeof(*s));
    if (!s)
        return ws_raise(-ENOMEM);
    int flags =
        mode == WS_STORE_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    int e =
        sqlite3_open_v2(path, &s->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    int r;
    if ((e & 0xff) == SQLITE_CANTOPEN) {
        int no = sqlite3_system_errno(s->db);
        r = ws_raise(no ? -no : -EIO);
        say(s, "%s", strerror(-r));
    } else {
        r = outcome(s, e);
    }
    if (!r) {
        sqlite3_busy_timeout(s->db, BUSY_TIMEOUT_MS);
        r = check_identity(s, mode);
    }
    if (!r)
        r = check_damage(s);
    if (!r)
        r = prepare_all(s);
    if (r) {
        ws_diags_add(diags, path, 0, 0, "%s", s->error);
        ws_store_close(s);
        return r < 0 ? ws_forward(r) : r;
    }
    *ret = s;
    return 0;
}

/* ---- rows ---- */

static int bind_key(sqlite3_stmt *st, const struct ws_profile_key *k)
{
    const char *texts[] = {k->hash, k->gpu, k->shape};
    for (int i = 0; i < WS_N_KEY_COLUMNS; i++) {
        int e = sqlite3_bind_text(st, i + 1, texts[i], -1, SQLITE_STATIC);
        if (e)
            return e;
    }
    return SQLITE_OK;
}

static int bind_columns(sqlite3_stmt *st, int first, const struct ws_column *c, const void *of,
                        uint32_t has)
{
    for (int i = first; c->name; c++, i++) {
        const void *at = (const char *)of + c->offset;
        int e = SQLITE_OK;
        if (c->part && !(has & c->part))
            e = sqlite3_bind_null(st, i);
        else if (c->type == WS_COL_TEXT)
            e = sqlite3_bind_text(st, i, at, -1, SQLITE_STATIC);
        else if (c->type == WS_COL_DOUBLE)
            e = sqlite3_bind_double(st, i, *(const double *)at);
        else
            e = sqlite3_bind_int64(st, i,
                                   c->type == WS_COL_U32 ? *(const uint32_t *)at
                                                         : (int64_t) * (const uint64_t *)at);
        if (e)
            return e;
    }
    return SQLITE_OK;
}

/* Reads a row. A value of another kind or out of range means damage (or a hand that wrote it): the
 * later check finds it. */
static bool read_columns(sqlite3_stmt *st, const struct ws_column *c, void *of, uint32_t *has)
{
    uint32_t missing = 0, present = 0;
    for (int i = 0; c->name; c++, i++) {
        void *at = (char *)of + c->offset;
        int kind = sqlite3_column_type(st, i);
        if (kind == SQLITE_NULL) {
            if (!c->part)
                return false;
            missing |= c->part;
            continue;
        }
        present |= c->part;
        if (c->type == WS_COL_TEXT) {
            const char *text = (const char *)sqlite3_column_text(st, i);
            if (kind != SQLITE_TEXT || !text || strlen(text) >= c->bytes)
                return false;
            strcpy(at, text);
        } else if (c->type == WS_COL_DOUBLE) {
            if (kind != SQLITE_FLOAT && kind != SQLITE_INTEGER)
                return false;
            *(double *)at = sqlite3_column_double(st, i);
        } else {
            int64_t v = sqlite3_column_int64(st, i);
            if (kind != SQLITE_INTEGER || v < 0 || (c->type == WS_COL_U32 && v > UINT32_MAX))
                return false;
            if (c->type == WS_COL_U32)
                *(uint32_t *)at = (uint32_t)v;
            else
                *(uint64_t *)at = (uint64_t)v;
        }
    }
    if (has)
        *has = present;
    return !(missing & present); /* a part is there wholly or not at all */
}

static int read_points(struct ws_store *s, struct ws_profile *p)
{
    sqlite3_stmt *st = s->st[ST_GET_POINTS];
    int e = bind_key(st, &p->key), r = 0;
    if (!e)
        e = sqlite3_step(st);
    for (; e == SQLITE_ROW && !r; e = sqlite3_step(st)) {
        struct ws_profile_point q = {0};
        if (!read_columns(st, ws_point_columns, &q, NULL)) {
            say(s, "the file is damaged (a point of %s)", p->key.hash);
            r = WS_STORE_E_FORMAT;
        } else {
            r = ws_profile_put_point(p, &q);
        }
        if (r)
            break;
    }
    if (!r && e != SQLITE_DONE)
        r = outcome(s, e);
    sqlite3_reset(st);
    return r;
}

/* The profile whose row @st stands on. */
static int read_profile(struct ws_store *s, sqlite3_stmt *st, struct ws_profile *p)
{
    struct ws_diags diags = WS_DIAGS_NULL;
    int r = 0;
    if (!read_columns(st, ws_profile_columns, p, &p->has)) {
        say(s, "the file is damaged (a profile of %.64s)", p->key.hash);
        r = WS_STORE_E_FORMAT;
    }
    if (!r)
        r = read_points(s, p);
    if (!r && ws_profile_check(p, NULL, 0, &diags)) {
        say(s, "the file is damaged (profile of %s: %s)", p->key.hash,
            diags.n ? diags.v[0].text : "wrong");
        r = WS_STORE_E_FORMAT;
    }
    ws_diags_deinit(&diags);
    return r;
}

int ws_store_get(struct ws_store *s, const struct ws_profile_key *key, struct ws_profile *ret)
{
    sqlite3_stmt *st = s->st[ST_GET];
    struct ws_profile p = WS_PROFILE_NULL;
    int r, e = bind_key(st, key);
    if (!e)
        e = sqlite3_step(st);
    if (e == SQLITE_ROW)
        r = read_profile(s, st, &p);
    else if (e == SQLITE_DONE)
        r = WS_STORE_E_NOTFOUND;
    else
        r = outcome(s, e);
    sqlite3_reset(st);
    if (r)
        ws_profile_deinit(&p);
    else
        *ret = p;
    return r;
}

int ws_store_begin(struct ws_store *s)
{
    if (s->begun)
        return ws_raise(-EINVAL);
    int r = run(s, "BEGIN IMMEDIATE");
    s->begun = !r;
    return r;
}

int ws_store_commit(struct ws_store *s, bool keep)
{
    if (!s->begun)
        return ws_raise(-EINVAL);
    int r = run(s, keep ? "COMMIT" : "ROLLBACK");
    if (r && keep)
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    s->begun = false;
    return r;
}

static int step_once(struct ws_store *s, sqlite3_stmt *st, int e)
{
    if (!e)
        e = sqlite3_step(st);
    int r = outcome(s, e);
    sqlite3_reset(st);
    return r;
}

static int put_rows(struct ws_store *s, const struct ws_profile *p)
{
    sqlite3_stmt *st = s->st[ST_PUT];
    int r = step_once(s, st, bind_columns(st, 1, ws_profile_columns, p, p->has));
    if (r)
        return r;
    st = s->st[ST_REMOVE_POINTS];
    r = step_once(s, st, bind_key(st, &p->key));
    st = s->st[ST_PUT_POINT];
    for (uint32_t i = 0; i < p->n_points && !r; i++) {
        int e = bind_key(st, &p->key);
        if (!e)
            e = bind_columns(st, WS_N_KEY_COLUMNS + 1, ws_point_columns, &p->points[i], 0);
        r = step_once(s, st, e);
    }
    return r;
}

int ws_store_put(struct ws_store *s, const struct ws_profile *p)
{
    struct ws_diags diags = WS_DIAGS_NULL;
    int r = ws_profile_check(p, NULL, 0, &diags);
    if (r)
        say(s, "%s", diags.n ? diags.v[0].text : "the profile is wrong");
    ws_diags_deinit(&diags);
    if (r)
        return ws_raise(r);
    bool own = !s->begun;
    if (own)
        r = ws_store_begin(s);
    if (!r)
        r = put_rows(s, p);
    if (own && s->begun) {
        char error[sizeof(s->error)];
        memcpy(error, s->error, sizeof(error));
        int e = ws_store_commit(s, !r);
        if (r)
            memcpy(s->error, error, sizeof(error)); /* the cause, not what rolling back said */
        else
            r = e;
    }
    return r;
}

int ws_store_remove(struct ws_store *s, const struct ws_profile_key *key)
{
    bool own = !s->begun;
    int r = own ? ws_store_begin(s) : 0;
    if (r)
        return r;
    r = step_once(s, s->st[ST_REMOVE], bind_key(s->st[ST_REMOVE], key));
    if (!r && !sqlite3_changes(s->db))
        r = WS_STORE_E_NOTFOUND;
    if (!r)
        r = step_once(s, s->st[ST_REMOVE_POINTS], bind_key(s->st[ST_REMOVE_POINTS], key));
    if (own) {
        int e = ws_store_commit(s, !r);
        r = r ? r : e;
    }
    return r;
}

int ws_store_each(struct ws_store *s, int (*each)(void *arg, const struct ws_profile *p), void *arg)
{
    sqlite3_stmt *st = s->st[ST_EACH];
    int r = 0, e;
    while (!r && (e = sqlite3_step(st)) != SQLITE_DONE) {
        struct ws_profile p = WS_PROFILE_NULL;
        r = e == SQLITE_ROW ? read_profile(s, st, &p) : outcome(s, e);
        if (!r)
            r = each(arg, &p);
        ws_profile_deinit(&p);
    }
    sqlite3_reset(st);
    return r;
}

// SPDX-License-Identifier: Apache-2.0
/* models/store.h - what is known of kernels: a file of profiles (SQLite), keyed by the kernel's
 * content and the kind of GPU.
 *
 * A profile says how long a kernel took on each number of SMs and at what power, how long its
 * copies take, what it executes, how it reacts to clocks, and how far predictions were off. What
 * is not known is not there (`has`), never a guess. Files: one SQLite database with its own
 * application id and schema version; any number of processes may read while one writes. Exchange
 * is by CSV, one line for each profile and SM count, exact in both directions (store_csv.c).
 * Units: times in ms, powers in W, sizes in bytes. Threads: one at a time per store. Errors:
 * base/error.h. */
#ifndef WS_MODELS_STORE_H
#define WS_MODELS_STORE_H

#include <stdbool.h>
#include <stdio.h>
#include "base/diag.h"
#include "base/macros.h"
#include "models/dvfs.h"
#include "models/mwp_cwp.h"
#include "models/stat.h"

enum { WS_STORE_SCHEMA = 1 };
enum {
    WS_PROFILE_HASH_BYTES = 65,
    WS_PROFILE_GPU_BYTES = 32,
    WS_PROFILE_SHAPE_BYTES = 64,
    WS_PROFILE_NAME_BYTES = 256
};

struct ws_profile_key {
    char hash[WS_PROFILE_HASH_BYTES]; /* of the kernel's code: letters, digits, ". _ : -" */
    char gpu[WS_PROFILE_GPU_BYTES];   /* of the catalog: "rtx3070" */
    /* Of the launch, "48x1x1/256x1x1"; "": whatever its shape */
    char shape[WS_PROFILE_SHAPE_BYTES];
};
/* What is known for one number of SMs. */
struct ws_profile_point {
    uint32_t n_sms;
    uint64_t n_runs;
    double time_max_ms, time_mean_ms,
        time_min_ms;   /* max: the worst seen, which stands for the WCET */
    double time_m2;    /* as ws_stat.m2 */
    uint64_t n_powers; /* runs whose power was measured; 0: power_w means nothing */
    double power_w;    /* mean, of the whole GPU */
};
enum { /* which parts are known */
       WS_PROFILE_MODEL = 1u << 0,
       WS_PROFILE_COPIES = 1u << 1,
       WS_PROFILE_DVFS = 1u << 2,
       WS_PROFILE_CPU = 1u << 3
};
struct ws_profile {
    struct ws_profile_key key;
    char name[WS_PROFILE_NAME_BYTES]; /* for people */
    uint32_t has;                     /* WS_PROFILE_…; fields of what isn't there are 0 */
    struct ws_mwp_kernel kernel; /* MODEL: instructions per thread, threads, blocks, occupancy */
    double h2d_ms, d2h_ms;       /* COPIES: in and out, of one run */
    uint64_t in_bytes, out_bytes;
    struct ws_dvfs_task dvfs;               /* DVFS: in W and ms */
    double cpu_ms, cpu_mj;                  /* CPU: the same work on the host's processor */
    struct ws_stat time_error, power_error; /* (predicted - measured) / measured */
    uint32_t n_points;
    struct ws_profile_point *points; /* by n_sms; owned */
    size_t cap_points;
};
#define WS_PROFILE_NULL ((struct ws_profile){0})
void ws_profile_deinit(struct ws_profile *p);
/* Sets the key. Return: 0 or -EINVAL (too long, or letters that a key may not have). */
WS_MUST_CHECK int ws_profile_key_set(struct ws_profile_key *k, const char *hash, const char *gpu,
                                     const char *shape);
/* What is known for exactly @n_sms SMs, or NULL. Borrowed until the profile changes. */
const struct ws_profile_point *ws_profile_at(const struct ws_profile *p, uint32_t n_sms);
/* One more run on @n_sms SMs. @power_w: NAN where it wasn't measured. Return: 0, -EINVAL (n_sms 0,
 * a time that isn't positive), -ENOMEM. */
WS_MUST_CHECK int ws_profile_add_run(struct ws_profile *p, uint32_t n_sms, double time_ms,
                                     double power_w);
/* Puts a point in its place, replacing what was known there. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_profile_put_point(struct ws_profile *p, const struct ws_profile_point *point);
/* Learns from a prediction that was put to the test. Ignored unless both are positive and
 * finite. */
void ws_profile_add_error(struct ws_stat *error, double predicted, double measured);
/* What to multiply a prediction by: 1 / (1 + mean error), held to [0.1, 10]; 1 where nothing is
 * known. */
double ws_profile_correction(const struct ws_stat *error);
/* All that a store or CSV may not hold is refused: -EINVAL with a diagnostic that names the field.
 * @file, @line: for it. */
WS_MUST_CHECK int ws_profile_check(const struct ws_profile *p, const char *file, uint32_t line,
                                   struct ws_diags *diags);

struct ws_store;
enum {
    _WS_STORE_OK,
    WS_STORE_E_NOTFOUND, /* no such profile */
    WS_STORE_E_FORMAT,   /* not a profile store, or damaged */
    WS_STORE_E_NEWER,    /* of a later schema than WS_STORE_SCHEMA */
    WS_STORE_E_BUSY      /* another process kept it locked for 5 s */
};
enum { WS_STORE_READ, WS_STORE_WRITE /* makes the file if there is none */ };
/**
 * ws_store_open() - open a file of profiles
 * @diags: gets "FILE: what is wrong" for every failure; may be NULL
 * The whole file is checked for damage once. Return: 0, WS_STORE_E_FORMAT, _NEWER, _BUSY, -ENOENT,
 * -EACCES, -EIO, -ENOMEM.
 */
WS_MUST_CHECK int ws_store_open(struct ws_store **ret, const char *path, int mode,
                                struct ws_diags *diags);
struct ws_store *ws_store_close(struct ws_store *s); /* NULL ok; returns NULL */
/* The words for the last failure of a call below; borrowed until the next. */
const char *ws_store_error(const struct ws_store *s);

/* @ret: deinit with ws_profile_deinit(); untouched unless 0. Return: 0, WS_STORE_E_NOTFOUND,
 *       _FORMAT, _BUSY, negative. */
WS_MUST_CHECK int ws_store_get(struct ws_store *s, const struct ws_profile_key *key,
                               struct ws_profile *ret);
/* Replaces the profile of the same key, points and all, as one transaction, unless one was begun;
 * its end waits for the disk (milliseconds) and for other writers, so it is not for an event loop.
 * Return: 0, -EINVAL (ws_profile_check()), _BUSY, … */
WS_MUST_CHECK int ws_store_put(struct ws_store *s, const struct ws_profile *p);
/* Return: 0, WS_STORE_E_NOTFOUND, … */
WS_MUST_CHECK int ws_store_remove(struct ws_store *s, const struct ws_profile_key *key);
/* Calls @each for every profile, by hash, GPU, shape; from one state of the file, whoever writes
 * meanwhile. @p is @each's to read only. Stops where it returns non-zero, and returns that. @each
 * may not write to the store. */
WS_MUST_CHECK int ws_store_each(struct ws_store *s,
                                int (*each)(void *arg, const struct ws_profile *p), void *arg);
/* Many changes as one; what is read after ws_store_begin() is not changed by others before the end.
 * Return: 0, _BUSY, … ws_store_commit(s, false) forgets them all. */
WS_MUST_CHECK int ws_store_begin(struct ws_store *s);
WS_MUST_CHECK int ws_store_commit(struct ws_store *s, bool keep);

/* ---- CSV (store_csv.c) ---- */
struct ws_store_import {
    uint64_t n_profiles, n_points, n_bad_lines;
};
/**
 * ws_store_import() - read profiles from CSV, replacing those of the same key
 * @name: of the file, for messages. @diags: "FILE:LINE:COLUMN: text" for each bad line; columns are
 * counted in fields A profile that has a bad line is left as it was; the others are taken. A file
 * whose first line isn't ours, or of a newer version, changes nothing. Return: 0 (look at
 * n_bad_lines), WS_STORE_E_FORMAT, _NEWER, _BUSY, negative.
 */
WS_MUST_CHECK int ws_store_import(struct ws_store *s, FILE *f, const char *name,
                                  struct ws_store_import *ret, struct ws_diags *diags);
/* Writes all profiles. Return: 0, -EIO (writing failed), or as ws_store_each(). */
WS_MUST_CHECK int ws_store_export(struct ws_store *s, FILE *f);

#endif

// SPDX-License-Identifier: Apache-2.0
/* backend/code/cache.h - module images and the code made from them, shared by all clients.
 *
 * An image is known by the SHA-256 of its bytes; code by the SHA-256 of the PTX text it came
 * from (two GPUs may pick the same text out of one fatbin). An image lives as long as somebody
 * holds a reference, and then in a cache of bounded size, the longest unused leaving first. Code
 * lives as long as an image that it belongs to. Threads: daemon loop, but for what is said to be
 * for any; those share the table of codes, under a lock. */
#ifndef WS_BACKEND_CODE_CACHE_H
#define WS_BACKEND_CODE_CACHE_H

#include <pthread.h>
#include "backend/accounts/account.h"
#include "base/list.h"
#include "base/table.h"
#include "backend/learn/learn.h"
#include "backend/code/discard.h"
#include "backend/code/rewrite.h"
#include "device/device.h"
#include "protocol/protocol.h"

struct ws_image_use; /* by one user */

#define WS_NO_PLACE UINT64_MAX
struct ws_code_entry {
    uint8_t sha256[WS_SHA256_BYTES]; /* of the text */
    struct ws_device *device;        /* any of the kind: unloads it */
    struct ws_ptx_module *ptx;
    struct ws_dmodule *dmodule;
    const struct ws_dmodule_info *info;
    uint32_t n_kernels;             /* the program's own: the first of info->kernels */
    struct ws_rewritten *rewritten; /* [n_kernels], or NULL: none is rewritten. malloc'ed */
    struct ws_learn_code *learn;    /* NULL: nothing is learned of it. Owned */
    uint64_t bytes;                 /* about what it takes of the daemon's memory */
    char *warnings;                 /* malloc'ed: what of it can't run; NULL: nothing */
    bool prints;                    /* kernels may write text */
    struct {
        uint8_t *bytes; /* malloc'ed */
        size_t n;
    } packed; /* a ModuleInfo of nothing but the kernels: the same for all clients */
    struct ws_packed_variables {
        uint8_t *bytes; /* the variables of a ModuleInfo; malloc'ed, as is at */
        size_t n_bytes;
        struct ws_packed_variable {
            uint32_t index;   /* in info->vars */
            uint32_t address; /* where in its bytes its address is: WS_PACKED_ADDRESS_BYTES */
            size_t begin;
        } * at; /* of each that has an address */
        uint32_t n;
    } variables;
    struct ws_variable_places { /* in the one piece of memory that has a client's variables */
        uint64_t *at;           /* [info->n_vars]; WS_NO_PLACE: it is not there. malloc'ed */
        uint64_t bytes;
        Ws__Error error; /* why there can be no such memory */
        /* About what a new instance writes, and one whose managed variables keep what they have. */
        uint64_t written_bytes, written_keeping_bytes;
    } places;
    bool bound;      /* to its GPU: functions are called by addresses, or nobody knows */
    bool uses_heap;  /* a kernel of it does */
    uint32_t n_refs; /* images, and who just made it */
    UT_hash_handle hh;
};

struct ws_image {
    uint8_t sha256[WS_SHA256_BYTES];
    struct ws_cache *cache;
    uint8_t *data;
    uint64_t bytes;
    uint32_t n_refs;
    struct ws_list lru;  /* in cache->lru while n_refs is 0 */
    struct ws_list uses; /* of users who are charged for it */
    struct {
        uint32_t sm;
        struct ws_code_entry *code;
    } * by_sm;
    size_t n_by_sm, cap_by_sm;
    UT_hash_handle hh;
};

struct ws_cache {
    struct ws_image *images;
    struct ws_code_entry *codes;
    pthread_mutex_t code_lock; /* codes, n_codes, and each code's n_refs */
    struct ws_list lru;        /* oldest first */
    uint64_t bytes, limit_bytes;
    uint32_t n_images, n_codes;
    uint64_t max_text_bytes; /* of a decompressed PTX */
    struct ws_rewrite_choice rewrite;
    struct ws_discards *discards; /* borrowed; where images and codes go */
    bool learn;                   /* what the code tells of its kernels is wanted */
};

void ws_cache_init(struct ws_cache *c, uint64_t limit_bytes, uint64_t max_text_bytes);
/* No references may be left. */
void ws_cache_deinit(struct ws_cache *c);
/* Frees some of the images that nobody uses, if together they are over the limit. Called where the
 * cache grows, and in each turn of the loop. Return: whether more are to be freed. */
bool ws_cache_evict_some(struct ws_cache *c);
/* Return: a new reference, or NULL. */
struct ws_image *ws_cache_find(struct ws_cache *c, const uint8_t *sha256);
/* @sha256 must be that of the data; @data: taken (malloc) if 0 is returned. *ret: a new
 *   reference. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_cache_add(struct ws_cache *c, const uint8_t *sha256, uint8_t *data,
                               uint64_t bytes, struct ws_image **ret);
struct ws_image *ws_image_ref(struct ws_image *i);
struct ws_image *ws_image_unref(struct ws_image *i);
/* Charges @a with the image's bytes, once however often it uses the image, and takes a reference
 * to the image. Return: NULL: no memory, or the account may have no more (*ret_refused). */
struct ws_image_use *ws_image_use(struct ws_image *i, struct ws_account *a, bool *ret_refused);
/* Charges the user of @u with the memory of @code, a code of its image, once. Return: false: the
 * account may have no more. */
WS_MUST_CHECK bool ws_image_use_code(struct ws_image_use *u, const struct ws_code_entry *code);
void ws_image_unuse(struct ws_image_use *u); /* NULL ok */
/* The code of @i for @device if it was made before (and the image told of it), or NULL. Loop
 * thread. */
struct ws_code_entry *ws_image_code_known(const struct ws_image *i, const struct ws_device *device);
/* Extracts, parses (and links) and decodes the code of @i for @device, or finds it made from the
 * same text by another image. Any thread, while somebody holds a reference to @i. *ret: a
 * reference. @name: for messages.
 * Return: 0, WS_PTX_E_… (see @diags), -ENOMEM. */
WS_MUST_CHECK int ws_image_code_make(const struct ws_image *i, struct ws_device *device,
                                     const char *name, struct ws_code_entry **ret,
                                     struct ws_diags *diags);
/* Gives the image a code that was made; the reference is taken. Return: 0 or -ENOMEM. Loop
 * thread. */
WS_MUST_CHECK int ws_image_code_adopt(struct ws_image *i, const struct ws_device *device,
                                      struct ws_code_entry *code);
void ws_code_unref(struct ws_cache *c, struct ws_code_entry *code);
/* How many codes there are now. Any thread. */
uint32_t ws_cache_n_codes(struct ws_cache *c);

#endif

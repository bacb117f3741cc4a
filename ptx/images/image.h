/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/images/image.h - images that CUDA programs carry: PTX text, fat binaries, machine code, and
 * several of them to be linked. */
#ifndef WS_PTX_IMAGES_IMAGE_H
#define WS_PTX_IMAGES_IMAGE_H

#include "base/diag.h"
#include "ptx/ir.h"

/* ---- linking (ptx/images/link.c; PTX ISA 5.1 to 5.4 and 11.6, "Linking Directives") ---- */
struct ws_ptx_link_part {
    struct ws_ptx_module *m;
    const char *name; /* for messages: "b.ptx", or NULL */
};
enum { WS_PTX_LINK_STRICT = 1u << 0 };
/**
 * ws_ptx_link() - make one module of several
 * @ret: out; untouched unless 0 is returned
 * @parts, @n: taken over and freed, whatever is returned
 * @flags: WS_PTX_LINK_STRICT: a function or variable that is used and nowhere defined is an error.
 *   Without it, it stays an .extern declaration, and the kernels that reach it can't run.
 * @diags: may be NULL; names symbol, part and line of what is wrong
 *
 * Symbols that are .visible, .weak, .common or .extern are one across parts, the others are their
 * part's own and renamed where two have one name. Return: 0, WS_PTX_E_SYNTAX, WS_PTX_E_NOTFOUND
 * (unresolved), -ENOMEM. */
WS_MUST_CHECK int ws_ptx_link(struct ws_ptx_module **ret, const struct ws_ptx_link_part *parts,
                              size_t n, unsigned flags, struct ws_diags *diags);
/* A function that CUDA's device code may call without defining it: vprintf, malloc, __assertfail,
 * the device runtime's. */
bool ws_ptx_is_system_func(const char *name);
/* Of a function of the device runtime, by which kernels start kernels: what follows the prefix of
 * its name, as nvcc since 12.0 or before writes it. NULL: @name is none. */
const char *ws_ptx_device_runtime(const char *name);
/* Whether @rest, which ws_ptx_device_runtime() gave, is @function, for either kind of default
 * stream: the name for those of a thread's own ends with _ptsz. */
bool ws_ptx_is_device_runtime(const char *rest, const char *function);

/* ---- images (ptx/images/image.c) ----
 *
 * An image is PTX text, a fatbin, or a container of either that is to be linked. */

struct ws_ptx_texts {
    bool link, strict;
    uint32_t max_regs; /* of a thread, for kernels that do not say so themselves; 0: no limit */
    bool machine;      /* one, and it is a cubin */
    size_t n;
    struct {
        char *text; /* malloc'ed */
        size_t len;
        char *name; /* malloc'ed, or NULL */
    } * v;
};
/* What a device of compute capability @sm should run of an image: PTX, or, where there is none for
 * it, its machine code.
 * @no_machine_code: NULL: the device takes that; else why not, for messages. @max_bytes: of each
 *   text. @name: for messages.
 * Return: 0, WS_PTX_E_FORMAT, WS_PTX_E_NOTFOUND (nothing for the device), WS_PTX_E_UNSUPPORTED,
 * -ENOMEM. */
WS_MUST_CHECK int ws_ptx_image_texts(struct ws_ptx_texts *ret, const void *image, size_t len,
                                     uint32_t sm, const char *no_machine_code, size_t max_bytes,
                                     const char *name, struct ws_diags *diags);
/* Parses them, and links them if that is what the image asks for. Return: as ws_ptx_parse(),
 * ws_ptx_link(), ws_cubin_module(). */
WS_MUST_CHECK int ws_ptx_image_parse(struct ws_ptx_module **ret, const struct ws_ptx_texts *t,
                                     struct ws_diags *diags);
void ws_ptx_texts_deinit(struct ws_ptx_texts *t);

/* ---- fatbin (ptx/images/fatbin.c) ----
 *
 * The layout is a fact of the container, checked against nvcc 13. */

enum ws_fatbin_kind { WS_FATBIN_PTX = 1, WS_FATBIN_ELF = 2, WS_FATBIN_LTO = 8 };
struct ws_fatbin_entry {
    uint16_t kind;
    uint32_t sm;
    uint64_t flags;
    const uint8_t *payload;
    size_t payload_bytes; /* inside the image */
    size_t raw_bytes;     /* after decompression */
    const char *options;
    size_t options_len; /* ptxas options stored with it, inside the image; NULL if none */
};
/* Calls @each for every entry in order; stops when it returns non-zero, and returns that.
 * Return: 0, WS_PTX_E_FORMAT (with a diagnostic saying which field is wrong and at what offset), or
 * what @each returned. */
WS_MUST_CHECK int ws_fatbin_walk(const void *image, size_t len,
                                 int (*each)(const struct ws_fatbin_entry *e, void *arg), void *arg,
                                 struct ws_diags *diags);
/* Decompressed payload (plain, LZ4 block, zstd), malloc'ed with a NUL after it. @max_bytes guards
 * against bombs.
 * Return: 0, WS_PTX_E_FORMAT, WS_PTX_E_UNSUPPORTED (a compression or kind named in the diagnostic),
 * -ENOMEM. */
WS_MUST_CHECK int ws_fatbin_extract(const struct ws_fatbin_entry *e, size_t max_bytes, char **ret,
                                    size_t *ret_len, struct ws_diags *diags);
/* The PTX that a device of compute capability @sm (75, 90, …) should run: the newest arch not above
 * it, else the lowest there is.
 * Return: 0, WS_PTX_E_NOTFOUND (diagnostic lists what is there), or as above. */
WS_MUST_CHECK int ws_fatbin_ptx(const void *image, size_t len, uint32_t sm, size_t max_bytes,
                                char **ret, size_t *ret_len, struct ws_diags *diags);
/* The same, or machine code, as ws_ptx_image_texts() says; *ret_machine: it is that. */
WS_MUST_CHECK int ws_fatbin_code(const void *image, size_t len, uint32_t sm,
                                 const char *no_machine_code, size_t max_bytes, char **ret,
                                 size_t *ret_len, bool *ret_machine, struct ws_diags *diags);
/* Whether a GPU of compute capability @sm runs machine code for @code_sm: the same generation, and
 * not newer. */
bool ws_fatbin_machine_runs(uint32_t code_sm, uint32_t sm);
/* What an image handed to cuModuleLoadData is: looks at its beginning; PTX starts with .version
 * behind blanks and comments. */
enum ws_image_kind {
    WS_IMAGE_UNKNOWN,
    WS_IMAGE_FATBIN,
    WS_IMAGE_PTX,
    WS_IMAGE_CUBIN,
    WS_IMAGE_LINK /* base/link_image.h */
};
enum ws_image_kind ws_image_kind(const void *image, size_t len);

#endif

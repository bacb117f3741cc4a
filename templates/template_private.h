/* SPDX-License-Identifier: Apache-2.0 */
/* templates/template_private.h - between the files of the room. */
#ifndef WS_TEMPLATES_TEMPLATE_PRIVATE_H
#define WS_TEMPLATES_TEMPLATE_PRIVATE_H

#include "templates/template.h"

/* A copy of @m in which only @func, and what it reaches, has bodies; every name begins with
 * @prefix; nothing is visible to other modules; variables have no initial values (they are the
 * client's, and there already). Variables keep their numbers.
 * Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_template_copy(struct ws_ptx_module **ret, const struct ws_ptx_module *m,
                                   uint32_t func, const char *prefix);
/* Drops all functions but @func and what it reaches, and all variables that nobody uses; @func
 * becomes number *@ret_func. Pointers into m->funcs and m->vars are stale afterwards. Return: 0 or
 * -ENOMEM with the module as it was. */
WS_MUST_CHECK int ws_template_prune(struct ws_ptx_module *m, uint32_t func, uint32_t *ret_func);

/* Index of member @k's function that is called @name in its own module; -1: it isn't there. */
int32_t ws_template_find_func(const struct ws_ptx_module *m, uint32_t k, const char *name);
/* Fills in member[].var. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_template_place_vars(struct ws_template *t,
                                         const struct ws_template_kernel *kernels, uint32_t n);

/* Constants become global variables. */
void ws_template_plain_constants(struct ws_ptx_module *m);

/* What a function refers to. Sets funcs[i] and vars[i], for @func itself too, and for all that
 * these refer to. */
struct ws_template_uses {
    bool *funcs, *vars; /* [n_funcs], [n_vars], malloc'ed */
};
WS_MUST_CHECK int ws_template_find_uses(struct ws_template_uses *ret, const struct ws_ptx_module *m,
                                        uint32_t func);
void ws_template_uses_deinit(struct ws_template_uses *u);

#endif

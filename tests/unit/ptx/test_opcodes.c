// SPDX-License-Identifier: Apache-2.0
/* ptx/opcodes.def: each row has the properties that its effect and its operands ask for. A row that
 * lacks one would let a pass rewrite a kernel that it must refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "ptx/ptx.h"

enum { MEMORY = WS_DOES_LOAD | WS_DOES_STORE | WS_DOES_UPDATE };

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* Whether one of the operands is a single address, which the validator checks. */
static bool has_address(const struct ws_ptx_op_info *o)
{
    return starts(o->sig, "a") || strstr(o->sig, " a");
}

/* A row with a property has the effect, or one of the effects, that go with it. */
static void test_properties_fit_effects(void **state)
{
    (void)state;
#define E(e) (1u << WS_EFFECT_##e)
    static const struct {
        uint32_t does, effects;
    } rules[] = {
        {WS_DOES_LOAD, E(READ)},
        {WS_DOES_STORE, E(WRITE)},
        {WS_DOES_UPDATE, E(ATOMIC)},
        {WS_DOES_BULK, E(ATOMIC)},
        {WS_DOES_HIDE, E(MATRIX)},
        {WS_DOES_COPY, E(ALU)},
        {WS_DOES_ORDER, E(ALU)},
        {WS_DOES_CARRY_IN, E(ALU)},
        {WS_DOES_END_BLOCK, E(CONTROL)},
        {WS_DOES_LEAVE, E(CONTROL)},
        {WS_DOES_SYNC_WARP, E(WARP) | E(MATRIX)},
        {WS_DOES_SYNC_BLOCK, E(BARRIER)},
        {WS_DOES_ARRIVE, E(BARRIER)},
        {WS_DOES_CLUSTER, E(ALU) | E(BARRIER) | E(ATOMIC)},
        {WS_DOES_OUTLIVE, E(ATOMIC) | E(BARRIER) | E(NONE)},
    };
    uint32_t all = 0;
    for (size_t r = 0; r < WS_ARRAY_SIZE(rules); r++) {
        uint32_t rows = 0;
        for (int op = 0; op < _WS_OP_N; op++) {
            if (!(ws_ptx_ops[op].does & rules[r].does))
                continue;
            rows++;
            if (!(rules[r].effects >> ws_ptx_ops[op].effect & 1))
                fail_msg("%s: property %#x does not go with its effect", ws_ptx_ops[op].name,
                         rules[r].does);
        }
        assert_true(rows > 0);
        all |= rules[r].does;
    }
    assert_int_equal(all, _WS_DOES_ALL);
}

/* Loads, stores and atomics say so, and have the address where ws_ptx_writes_first() lets passes
 * look for it. */
static void test_memory(void **state)
{
    (void)state;
    for (int op = 0; op < _WS_OP_N; op++) {
        const struct ws_ptx_op_info *o = &ws_ptx_ops[op];
        bool accesses = o->effect == WS_EFFECT_READ || o->effect == WS_EFFECT_WRITE ||
                        o->effect == WS_EFFECT_ATOMIC;
        bool value = o->mix == WS_MIX_LDST || o->mix == WS_MIX_ATOM;
        if (accesses && value && has_address(o) && op != WS_OP_CP_ASYNC && op != WS_OP_DISCARD &&
            !(o->does & MEMORY))
            fail_msg("%s accesses memory but has no property that says so", o->name);
        if (!(o->does & MEMORY))
            continue;
        struct ws_ptx_insn i = {.op = (uint16_t)op, .n_operands = 2};
        const char *at = ws_ptx_writes_first(&i) ? strchr(o->sig, ' ') + 1 : o->sig;
        if (at[0] != 'a' || (at[1] && at[1] != ' '))
            fail_msg("%s: the address is not right behind the destination", o->name);
    }
}

/* What a thread must not pass without the others, and what ends a block, is marked. */
static void test_control(void **state)
{
    (void)state;
    for (int op = 0; op < _WS_OP_N; op++) {
        const struct ws_ptx_op_info *o = &ws_ptx_ops[op];
        bool ok = true;
        if (o->effect == WS_EFFECT_WARP)
            ok = op == WS_OP_ACTIVEMASK || o->does & WS_DOES_SYNC_WARP;
        if (o->effect == WS_EFFECT_MATRIX)
            ok = o->does & WS_DOES_SYNC_WARP;
        if (o->effect == WS_EFFECT_BARRIER && !starts(o->name, "cp.async."))
            ok =
                o->does & (WS_DOES_SYNC_BLOCK | WS_DOES_ARRIVE | WS_DOES_CLUSTER | WS_DOES_OUTLIVE);
        if (o->effect == WS_EFFECT_CONTROL)
            ok = op == WS_OP_CALL || op == WS_OP_BRKPT || o->does & WS_DOES_END_BLOCK;
        if (starts(o->name, "mbarrier.") && o->effect == WS_EFFECT_ATOMIC)
            ok = o->does & WS_DOES_OUTLIVE;
        if (o->does & WS_DOES_BULK)
            ok = ok && o->does & WS_DOES_OUTLIVE;
        if (o->does & WS_DOES_LEAVE)
            ok = ok && o->does & WS_DOES_END_BLOCK;
        if (o->does & WS_DOES_COPY)
            ok = ok && o->does & WS_DOES_ORDER;
        if (!ok)
            fail_msg("%s lacks a property", o->name);
    }
}

static bool in(char c, const char *set)
{
    return c && strchr(set, c);
}

/* One operand of the column sig: a whole word, or role, content and flags. */
static bool operand_ok(const char *s, size_t n)
{
    if (n == 1)
        return in(s[0], "alLiC*");
    if (n == 2 && s[1] == '?' && in(s[0], "i"))
        return true;
    if (n < 2 || !in(s[0], "ds") || !in(s[1], "012wpuUhx"))
        return false;
    for (size_t k = 2; k < n; k++)
        if (!in(s[k], "+v|!y?c"))
            return false;
    return true;
}

/* Columns that are text consist of the letters that the head of opcodes.def explains. */
static void test_letters(void **state)
{
    (void)state;
    for (int op = 0; op < _WS_OP_N; op++) {
        const struct ws_ptx_op_info *o = &ws_ptx_ops[op];
        assert_true(o->name[0] && o->meaning[0]);
        assert_true(o->min_types <= o->max_types && o->max_types <= WS_PTX_MAX_TYPES);
        for (const char *m = o->mods; *m; m++)
            if (!in(*m, "TRrfsaFcmMogpqvknuylChwNxeizE") && strcmp(o->mods, "W") != 0)
                fail_msg("%s: modifier %c", o->name, *m);
        for (const char *s = o->sig; *s; s += strcspn(s, " "), s += *s == ' ')
            if (!operand_ok(s, strcspn(s, " ")))
                fail_msg("%s: operand %s", o->name, s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_properties_fit_effects),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_letters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

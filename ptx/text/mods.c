// SPDX-License-Identifier: Apache-2.0
/* ptx/text/mods.c - opcodes with their modifiers, both ways: "atom.global.add.u32" to fields and
 * back.
 *
 * A word may mean several things (".lo" is a comparison, the low half of a product; ".cta" a scope,
 * a kind of membar): each meaning has a letter, and the letters in the opcode's row say which of
 * them it takes. Decoding runs once per different text in a module; the result is kept with the
 * interned text. Order is free when reading and that of the row when printing. */
#include "ptx/ptx_private.h"

#include <stdlib.h>
#include <string.h>

struct modifier_word {
    const char *text;
    char letter;
    uint32_t value;
};

/* clang-format off */
static const struct modifier_word words[] = {
    {"rn", 'r', WS_RND_RN}, {"rz", 'r', WS_RND_RZ}, {"rm", 'r', WS_RND_RM}, {"rp", 'r', WS_RND_RP},
    {"rn", 'R', WS_RND_RN}, {"rz", 'R', WS_RND_RZ}, {"rm", 'R', WS_RND_RM}, {"rp", 'R', WS_RND_RP},
    {"rna", 'R', WS_RND_RNA}, {"rni", 'R', WS_RND_RNI}, {"rzi", 'R', WS_RND_RZI},
    {"rmi", 'R', WS_RND_RMI}, {"rpi", 'R', WS_RND_RPI},
    {"eq", 'c', WS_CMP_EQ}, {"ne", 'c', WS_CMP_NE}, {"lt", 'c', WS_CMP_LT}, {"le", 'c', WS_CMP_LE},
    {"gt", 'c', WS_CMP_GT}, {"ge", 'c', WS_CMP_GE}, {"lo", 'c', WS_CMP_LO}, {"ls", 'c', WS_CMP_LS},
    {"hi", 'c', WS_CMP_HI}, {"hs", 'c', WS_CMP_HS}, {"equ", 'c', WS_CMP_EQU}, {"neu", 'c', WS_CMP_NEU},
    {"ltu", 'c', WS_CMP_LTU}, {"leu", 'c', WS_CMP_LEU}, {"gtu", 'c', WS_CMP_GTU}, {"geu", 'c', WS_CMP_GEU},
    {"num", 'c', WS_CMP_NUM}, {"nan", 'c', WS_CMP_NAN},
    {"and", 'm', WS_SUB_AND}, {"or", 'm', WS_SUB_OR}, {"xor", 'm', WS_SUB_XOR}, {"add", 'm', WS_SUB_ADD},
    {"min", 'm', WS_SUB_MIN}, {"max", 'm', WS_SUB_MAX}, {"inc", 'm', WS_SUB_INC}, {"dec", 'm', WS_SUB_DEC},
    {"cas", 'm', WS_SUB_CAS}, {"exch", 'm', WS_SUB_EXCH}, {"popc", 'm', WS_SUB_POPC},
    {"up", 'm', WS_SUB_UP}, {"down", 'm', WS_SUB_DOWN}, {"bfly", 'm', WS_SUB_BFLY}, {"idx", 'm', WS_SUB_IDX},
    {"all", 'm', WS_SUB_ALL}, {"any", 'm', WS_SUB_ANY}, {"uni", 'm', WS_SUB_UNI}, {"ballot", 'm', WS_SUB_BALLOT},
    {"lo", 'm', WS_SUB_LO}, {"hi", 'm', WS_SUB_HI}, {"wide", 'm', WS_SUB_WIDE}, {"l", 'm', WS_SUB_L},
    {"r", 'm', WS_SUB_R}, {"cta", 'm', WS_SUB_CTA}, {"gl", 'm', WS_SUB_GL}, {"sys", 'm', WS_SUB_SYS},
    {"to", 'm', WS_SUB_TO}, {"f4e", 'm', WS_SUB_F4E}, {"b4e", 'm', WS_SUB_B4E}, {"rc8", 'm', WS_SUB_RC8},
    {"ecl", 'm', WS_SUB_ECL}, {"ecr", 'm', WS_SUB_ECR}, {"rc16", 'm', WS_SUB_RC16},
    {"finite", 'm', WS_SUB_FINITE}, {"infinite", 'm', WS_SUB_INFINITE}, {"number", 'm', WS_SUB_NUMBER},
    {"notanumber", 'm', WS_SUB_NOTANUMBER}, {"normal", 'm', WS_SUB_NORMAL}, {"subnormal", 'm', WS_SUB_SUBNORMAL},
    {"weak", 'o', WS_SEM_WEAK}, {"relaxed", 'o', WS_SEM_RELAXED}, {"acquire", 'o', WS_SEM_ACQUIRE},
    {"release", 'o', WS_SEM_RELEASE}, {"acq_rel", 'o', WS_SEM_ACQ_REL}, {"sc", 'o', WS_SEM_SC},
    {"volatile", 'o', WS_SEM_VOLATILE}, {"mmio", 'o', WS_SEM_MMIO},
    {"cta", 'g', WS_SCOPE_CTA}, {"cluster", 'g', WS_SCOPE_CLUSTER}, {"gpu", 'g', WS_SCOPE_GPU}, {"sys", 'g', WS_SCOPE_SYS},
    {"const", 'p', WS_SP_CONST}, {"global", 'p', WS_SP_GLOBAL}, {"local", 'p', WS_SP_LOCAL},
    {"shared", 'p', WS_SP_SHARED}, {"param", 'p', WS_SP_PARAM},
    {"shared::cta", 'p', WS_SP_SHARED | 0x100}, {"param::entry", 'p', WS_SP_PARAM | 0x100},
    {"shared::cluster", 'p', WS_SP_SHARED | 0x200}, {"param::func", 'p', WS_SP_PARAM | 0x200},
    {"v2", 'v', 2}, {"v4", 'v', 4}, {"v8", 'v', 8},
    {"ca", 'k', 1}, {"cg", 'k', 2}, {"cs", 'k', 3}, {"lu", 'k', 4}, {"cv", 'k', 5}, {"wb", 'k', 6}, {"wt", 'k', 7},
    {"ftz", 'f', WS_F_FTZ}, {"sat", 's', WS_F_SAT}, {"approx", 'a', WS_F_APPROX}, {"full", 'F', WS_F_FULL},
    {"nc", 'n', WS_F_NC}, {"uni", 'u', WS_F_UNI}, {"sync", 'y', WS_F_SYNC}, {"aligned", 'l', WS_F_ALIGNED},
    {"cc", 'C', WS_F_CC}, {"shiftamt", 'h', WS_F_SHIFTAMT}, {"clamp", 'w', WS_F_CLAMP}, {"wrap", 'w', WS_F_WRAP},
    {"NaN", 'N', WS_F_NAN}, {"xorsign", 'x', WS_F_XORSIGN_ABS}, {"relu", 'e', WS_F_RELU},
    {"noinc", 'i', WS_F_NOINC}, {"noftz", 'z', WS_F_NOFTZ},
};
/* clang-format on */

static const char *word_text(char letter, uint32_t value)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(words); i++)
        if (words[i].letter == letter && words[i].value == value)
            return words[i].text;
    return "?";
}

static bool same(const char *text, const char *s, size_t len)
{
    return text[0] == s[0] && !strncmp(text, s, len) && !text[len];
}

bool ws_type_from_word(const char *s, size_t len, uint8_t *ret)
{
    for (int t = WS_T_B8; t < _WS_T_N; t++)
        if (same(ws_ptx_type_name(t), s, len)) {
            *ret = t;
            return true;
        }
    return false;
}

static bool numbered(const char *s, size_t len, const char *prefix, unsigned n,
                     struct ws_ptx_operand *ret)
{
    size_t k = strlen(prefix);
    if (len <= k || len > k + 2 || memcmp(s, prefix, k) || s[k] < '0' || s[k] > '9')
        return false;
    unsigned v = s[k] - '0';
    if (len == k + 2) {
        if (s[k + 1] < '0' || s[k + 1] > '9' || !v)
            return false;
        v = v * 10 + (s[k + 1] - '0');
    }
    ret->sreg_dim = v;
    return v < n;
}

bool ws_sreg_from_word(const char *s, size_t len, struct ws_ptx_operand *ret)
{
    static const char *const offsets[] = {"_0", "_1", "_begin", "_end", "_cap"};
    static const char reserved[] = "%reserved_smem_offset";
    ret->kind = WS_OPD_SREG;
    ret->sreg_dim = 0;
    for (int i = 1; i < _WS_SR_N; i++)
        if (i != WS_SR_ENVREG && i != WS_SR_PM && i != WS_SR_RESERVED_SMEM_OFFSET &&
            same(ws_ptx_sreg_name(i), s, len)) {
            ret->sreg = i;
            return true;
        }
    if (numbered(s, len, "%envreg", 32, ret)) {
        ret->sreg = WS_SR_ENVREG;
        return true;
    }
    bool wide = len > 3 && !memcmp(s + len - 3, "_64", 3);
    if (numbered(s, wide ? len - 3 : len, "%pm", 8, ret)) {
        ret->sreg = WS_SR_PM;
        ret->sreg_dim += wide ? 8 : 0;
        return true;
    }
    if (len > sizeof(reserved) - 1 && !memcmp(s, reserved, sizeof(reserved) - 1))
        for (size_t i = 0; i < WS_ARRAY_SIZE(offsets); i++)
            if (same(offsets[i], s + sizeof(reserved) - 1, len - (sizeof(reserved) - 1))) {
                ret->sreg = WS_SR_RESERVED_SMEM_OFFSET;
                ret->sreg_dim = i;
                return true;
            }
    return false;
}

/* The longest row whose mnemonic is the text's first words. */
static int find_op(struct ws_parser *p, const char *s, size_t len, size_t *ret_len)
{
    int found = -1;
    size_t e = 0;
    for (int n = 0; n < 4 && e < len; n++) {
        const char *dot = memchr(s + e + 1, '.', len - e - 1);
        e = dot ? (size_t)(dot - s) : len;
        struct ws_name *w = ws_name_find(p, s, e);
        if (w && w->op1) {
            found = w->op1 - 1;
            *ret_len = e;
        }
    }
    return found;
}

static bool set_once(uint8_t *field, uint32_t value)
{
    if (*field)
        return false;
    *field = value;
    return true;
}

static bool set_space(struct ws_ptx_insn *i, uint32_t v, bool second)
{
    if (!set_once(second ? &i->space2 : &i->space, v & 0xff))
        return false;
    if (v & 0x100)
        i->flags |= second ? WS_F_SP2_CTA : WS_F_SP_CTA;
    if (v & 0x200)
        i->flags |= second ? WS_F_SP2_CLUSTER : WS_F_SP_CLUSTER;
    return true;
}

/* Applies a meaning; false if that field was already given. */
static bool apply(struct ws_ptx_insn *i, const char *mods, const struct modifier_word *w)
{
    switch (w->letter) {
    case 'r':
    case 'R':
        return set_once(&i->rnd, w->value);
    case 'c':
        return set_once(&i->cmp, w->value);
    case 'm':
        return set_once(&i->sub, w->value);
    case 'o': /* ".mmio.relaxed" is one order, in two words */
        return (i->sem == WS_SEM_MMIO && w->value == WS_SEM_RELAXED) || set_once(&i->sem, w->value);
    case 'g':
        return set_once(&i->scope, w->value);
    case 'p':
        return set_space(i, w->value, i->space && strchr(mods, 'q'));
    case 'v':
        return set_once(&i->vec, w->value);
    case 'k':
        return set_once(&i->cache, w->value);
    default:
        if (i->flags & w->value)
            return false;
        i->flags |= w->value;
        return true;
    }
}

enum word_fit { FIT_NO, FIT_YES, FIT_TWICE };

/* Finds a meaning of the word that the row allows and applies it. */
static enum word_fit fit_word(struct ws_ptx_insn *i, const char *mods, uint64_t subs, const char *s,
                              size_t len)
{
    uint8_t type;
    enum word_fit r = FIT_NO;
    if (strchr(mods, 'x') && (i->flags & WS_F_XORSIGN_ABS) && same("abs", s, len))
        return FIT_YES;
    for (size_t k = 0; k < WS_ARRAY_SIZE(words); k++) {
        const struct modifier_word *w = &words[k];
        if (!same(w->text, s, len))
            continue;
        if (w->letter == 'm' ? !(subs >> w->value & 1) : !strchr(mods, w->letter))
            continue;
        if (apply(i, mods, w))
            return FIT_YES;
        r = FIT_TWICE;
    }
    if (strchr(mods, 'T') && ws_type_from_word(s, len, &type)) {
        if (i->n_types >= WS_PTX_MAX_TYPES)
            return FIT_TWICE;
        i->types[i->n_types++] = type;
        return FIT_YES;
    }
    return r;
}

static void say_bad_word(struct ws_parser *p, const struct ws_tok *t,
                         const struct ws_ptx_op_info *info, const char *s, size_t len,
                         enum word_fit fit)
{
    struct ws_tok at = *t;
    at.col += s - 1 - t->s;
    if (fit == FIT_TWICE) {
        ws_parse_fail(p, &at, "modifier '.%.*s' of '%s' contradicts or repeats an earlier one",
                      (int)len, s, info->name);
        return;
    }
    /* Say which words would do. */
    char list[256];
    size_t n = 0;
    list[0] = '\0';
    for (size_t k = 0; k < WS_ARRAY_SIZE(words) && n < sizeof(list) - 24; k++) {
        const struct modifier_word *w = &words[k];
        if (w->letter == 'm' ? info->subs >> w->value & 1 : strchr(info->mods, w->letter) != NULL)
            n += snprintf(list + n, sizeof(list) - n, " .%s", w->text);
    }
    ws_parse_fail(p, &at, "'%s' takes no modifier '.%.*s'%s%s%s", info->name, (int)len, s,
                  n ? "; it takes" : "", list,
                  strchr(info->mods, 'T') ? n ? " and a type" : "; it takes a type" : "");
}

static const char *add_ext(struct ws_parser *p, const char *ext, const char *s, size_t len)
{
    size_t n = ext ? strlen(ext) : 0;
    char *e = ws_arena_alloc(&p->m->arena, n + len + 1);
    if (!e) {
        ws_parse_oom(p);
        return NULL;
    }
    if (n)
        memcpy(e, ext, n);
    memcpy(e + n, s, len);
    return e;
}

static bool decode_words(struct ws_parser *p, const struct ws_tok *t, size_t at,
                         struct ws_ptx_insn *i)
{
    const struct ws_ptx_op_info *info = &ws_ptx_ops[i->op];
    bool whole = info->mods[0] == 'W', any = whole || strchr(info->mods, 'E');
    while (at < t->len) {
        const char *s = t->s + at + 1;
        const char *dot = memchr(s, '.', t->len - at - 1);
        size_t len = dot ? (size_t)(dot - s) : t->len - at - 1;
        enum word_fit fit =
            whole ? fit_word(i, "Togpvyl", 0, s, len) : fit_word(i, info->mods, info->subs, s, len);
        if ((fit == FIT_NO && !any) || (fit == FIT_TWICE && !whole)) {
            say_bad_word(p, t, info, s, len, fit);
            return false;
        }
        if (fit != FIT_YES && !whole && !(i->ext = add_ext(p, i->ext, s - 1, len + 1)))
            return false;
        at += len + 1;
    }
    return true;
}

const struct ws_ptx_insn *ws_mods_decode(struct ws_parser *p, const struct ws_tok *t)
{
    size_t at = 0;
    if (t->len > 250) {
        ws_parse_fail(p, t, "an instruction's name with more than 250 characters");
        return NULL;
    }
    struct ws_name *n = ws_name_intern(p, t->s, t->len);
    if (!n)
        return NULL;
    if (n->op_template)
        return n->op_template;
    int op = find_op(p, t->s, t->len, &at);
    if (op < 0) {
        ws_parse_unsupported(p, t, "unknown instruction '%.*s'", (int)WS_MIN(t->len, 80u), t->s);
        return NULL;
    }
    struct ws_ptx_insn *i = ws_arena_alloc(&p->scratch, sizeof(*i));
    if (!i) {
        ws_parse_oom(p);
        return NULL;
    }
    i->op = op;
    i->guard = -1;
    if (ws_ptx_ops[op].mods[0] == 'W' && at < t->len) {
        i->ext = ws_arena_strndup(&p->m->arena, t->s + at, t->len - at);
        if (!i->ext) {
            ws_parse_oom(p);
            return NULL;
        }
    }
    if (!decode_words(p, t, at, i))
        return NULL;
    n->op_template = i;
    return i;
}

static void print_space(const struct ws_ptx_insn *i, FILE *out, bool second)
{
    uint32_t v = second ? i->space2 : i->space;
    if (i->flags & (second ? WS_F_SP2_CTA : WS_F_SP_CTA))
        v |= 0x100;
    if (i->flags & (second ? WS_F_SP2_CLUSTER : WS_F_SP_CLUSTER))
        v |= 0x200;
    if (v)
        fprintf(out, ".%s", word_text('p', v));
}

static void print_field(FILE *out, char letter, uint32_t value)
{
    if (value)
        fprintf(out, ".%s", word_text(letter, value));
}

static void print_flags(const struct ws_ptx_insn *i, FILE *out, char letter)
{
    for (size_t k = 0; k < WS_ARRAY_SIZE(words); k++)
        if (words[k].letter == letter && i->flags & words[k].value)
            fprintf(out, ".%s%s", words[k].text, letter == 'x' ? ".abs" : "");
}

void ws_mods_print(const struct ws_ptx_insn *i, FILE *out)
{
    for (const char *m = ws_ptx_ops[i->op].mods; *m; m++) {
        switch (*m) {
        case 'T':
            for (int k = 0; k < i->n_types; k++)
                fprintf(out, ".%s", ws_ptx_type_name(i->types[k]));
            break;
        case 'r':
        case 'R':
            print_field(out, 'R', i->rnd);
            break;
        case 'c':
            print_field(out, 'c', i->cmp);
            break;
        case 'm':
        case 'M':
            print_field(out, 'm', i->sub);
            break;
        case 'o':
            print_field(out, 'o', i->sem);
            if (i->sem == WS_SEM_MMIO)
                fputs(".relaxed", out);
            break;
        case 'g':
            print_field(out, 'g', i->scope);
            break;
        case 'p':
            print_space(i, out, false);
            break;
        case 'q':
            print_space(i, out, true);
            break;
        case 'v':
            print_field(out, 'v', i->vec);
            break;
        case 'k':
            print_field(out, 'k', i->cache);
            break;
        case 'E':
        case 'W':
            if (i->ext)
                fputs(i->ext, out);
            break;
        default:
            print_flags(i, out, *m);
        }
    }
}

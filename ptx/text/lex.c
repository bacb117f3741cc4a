// SPDX-License-Identifier: Apache-2.0
/* ptx/text/lex.c - PTX text to tokens (PTX ISA 4.1 to 4.5).
 *
 * The lexer never copies: tokens point into the text, which need not end in NUL, so every look
 * ahead is checked against end. An opcode with its modifiers is one token (ws_lex_opcode()):
 * ".to.global.u64" is looked up as a whole, once per different text, which is most of the parser's
 * speed. */
#include "ptx/ptx_private.h"

#include <stdlib.h>
#include <string.h>

enum { C_ALPHA = 1, C_DIGIT = 2, C_SPACE = 4, C_NAME0 = 8 /* may start a name */ };

static const uint8_t class[256] = {
    ['a' ... 'z'] = C_ALPHA | C_NAME0,
    ['A' ... 'Z'] = C_ALPHA | C_NAME0,
    ['_'] = C_ALPHA | C_NAME0,
    ['$'] = C_ALPHA | C_NAME0,
    ['%'] = C_NAME0,
    ['0' ... '9'] = C_DIGIT,
    [' '] = C_SPACE,
    ['\t'] = C_SPACE,
    ['\r'] = C_SPACE,
    ['\f'] = C_SPACE,
    ['\v'] = C_SPACE,
};

static bool is(const struct ws_lex *l, const char *s, unsigned mask)
{
    return s < l->end && class[(uint8_t)*s] & mask;
}

void ws_lex_init(struct ws_lex *l, const char *text, size_t len)
{
    while (len && !text[len - 1])
        len--;
    *l = (struct ws_lex){.cur = text, .end = text + len, .line_start = text, .line = 1};
}

void ws_lex_deinit(struct ws_lex *l)
{
    if (l->c_locale)
        freelocale(l->c_locale);
    l->c_locale = 0;
}

static void newline(struct ws_lex *l)
{
    l->line++;
    l->line_start = ++l->cur;
}

static void skip_line(struct ws_lex *l)
{
    const char *nl = memchr(l->cur, '\n', l->end - l->cur);
    l->cur = nl ? nl : l->end;
}

/* Blanks, comments, # lines and old "@@DWARF" lines. Return: false if a comment does not end. */
static bool skip_blank(struct ws_lex *l)
{
    for (;;) {
        while (is(l, l->cur, C_SPACE))
            l->cur++;
        if (l->cur >= l->end)
            return true;
        const char *s = l->cur;
        bool two = s + 1 < l->end;
        if (*s == '\n') {
            newline(l);
        } else if (*s == '#' || (two && s[0] == '/' && s[1] == '/') ||
                   (two && s[0] == '@' && s[1] == '@')) {
            skip_line(l);
        } else if (two && s[0] == '/' && s[1] == '*') {
            l->cur += 2;
            for (;; l->cur++) {
                if (l->cur + 1 >= l->end)
                    return false;
                if (l->cur[0] == '*' && l->cur[1] == '/')
                    break;
                if (*l->cur == '\n') {
                    newline(l);
                    l->cur--;
                }
            }
            l->cur += 2;
        } else {
            return true;
        }
    }
}

static void bad(struct ws_tok *t, const char *message)
{
    t->kind = WS_TOK_BAD;
    t->s = message;
    t->len = strlen(message);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* Reads digits of the base; false if there are none or the value needs more than 64 bits. */
static bool digits(struct ws_lex *l, unsigned base, uint64_t *ret)
{
    uint64_t v = 0;
    bool any = false, fits = true;
    for (; l->cur < l->end && (unsigned)digit(*l->cur) < base; l->cur++) {
        fits &= !__builtin_mul_overflow(v, (uint64_t)base, &v);
        fits &= !__builtin_add_overflow(v, (uint64_t)digit(*l->cur), &v);
        any = true;
    }
    *ret = v;
    return any && fits;
}

static void decimal_float(struct ws_lex *l, struct ws_tok *t, const char *start)
{
    char buf[512];
    const char *s = start;
    while (is(l, s, C_DIGIT))
        s++;
    if (s < l->end && *s == '.')
        for (s++; is(l, s, C_DIGIT);)
            s++;
    if (s < l->end && (*s == 'e' || *s == 'E')) {
        const char *e = s + 1;
        if (e < l->end && (*e == '+' || *e == '-'))
            e++;
        if (is(l, e, C_DIGIT)) {
            while (is(l, e, C_DIGIT))
                e++;
            s = e;
        }
    }
    l->cur = s;
    if ((size_t)(s - start) >= sizeof(buf))
        return bad(t, "a floating-point constant with more than 500 characters");
    memcpy(buf, start, s - start);
    buf[s - start] = '\0';
    if (!l->c_locale && !(l->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0)))
        return bad(t, "out of memory");
    double d = strtod_l(buf, NULL, l->c_locale);
    t->imm_kind = WS_IMM_F64;
    memcpy(&t->value, &d, sizeof(d));
}

static void number(struct ws_lex *l, struct ws_tok *t)
{
    const char *start = l->cur;
    char c = l->cur + 1 < l->end && *l->cur == '0' ? l->cur[1] | 0x20 : 0;
    uint64_t v = 0;
    t->kind = WS_TOK_NUM;
    t->imm_kind = WS_IMM_INT;
    if (c == 'f' || c == 'd') {
        int want = c == 'f' ? 8 : 16;
        l->cur += 2;
        if (!digits(l, 16, &v) || l->cur - start != want + 2)
            bad(t, c == 'f' ? "0f must be followed by 8 hexadecimal digits"
                            : "0d must be followed by 16 hexadecimal digits");
        t->imm_kind = c == 'f' ? WS_IMM_F32 : WS_IMM_F64;
        t->value = v;
    } else if (c == 'x' || c == 'b') {
        l->cur += 2;
        if (!digits(l, c == 'x' ? 16 : 2, &v))
            bad(t, "a number with no digits or more than 64 bits");
        t->value = v;
    } else {
        const char *s = start;
        while (is(l, s, C_DIGIT))
            s++;
        if (s < l->end && (*s == '.' || *s == 'e' || *s == 'E'))
            decimal_float(l, t, start);
        else if (!digits(l, *start == '0' ? 8 : 10, &v))
            bad(t, "a number with no digits or more than 64 bits");
        else
            t->value = v;
    }
    if (t->kind == WS_TOK_NUM && t->imm_kind == WS_IMM_INT && l->cur < l->end &&
        (*l->cur | 0x20) == 'u')
        l->cur++;
    if (t->kind == WS_TOK_NUM && is(l, l->cur, C_ALPHA | C_DIGIT))
        bad(t, "a number runs into a name");
    t->big = t->imm_kind == WS_IMM_INT && t->value < 0;
}

static const struct {
    char a, b;
    uint8_t kind;
} pairs[] = {
    {'<', '<', WS_TOK_SHL},  {'>', '>', WS_TOK_SHR}, {'&', '&', WS_TOK_ANDAND},
    {'|', '|', WS_TOK_OROR}, {'=', '=', WS_TOK_EQ},  {'!', '=', WS_TOK_NE},
    {'<', '=', WS_TOK_LE},   {'>', '=', WS_TOK_GE},
};

/* A word behind a dot; "::" belongs to it (".shared::cta"), a single colon does not. */
static const char *word_end(const struct ws_lex *l, const char *s)
{
    for (;;) {
        while (is(l, s, C_ALPHA | C_DIGIT))
            s++;
        if (s + 2 < l->end && s[0] == ':' && s[1] == ':' && is(l, s + 2, C_ALPHA | C_DIGIT))
            s += 2;
        else
            return s;
    }
}

void ws_lex_next(struct ws_lex *l, struct ws_tok *t)
{
    bool ok = skip_blank(l);
    const char *s = l->cur;
    *t = (struct ws_tok){.line = l->line, .col = (uint32_t)(s - l->line_start) + 1, .s = s};
    if (!ok) {
        bad(t, "a comment does not end");
        l->cur = l->end;
        return;
    }
    if (s >= l->end)
        return;
    if (is(l, s, C_DIGIT) || (*s == '.' && is(l, s + 1, C_DIGIT))) {
        number(l, t);
        if (t->kind == WS_TOK_NUM)
            t->len = l->cur - s;
        return;
    }
    if (is(l, s, C_NAME0) && (*s != '%' || is(l, s + 1, C_ALPHA | C_DIGIT))) {
        for (l->cur++; is(l, l->cur, C_ALPHA | C_DIGIT);)
            l->cur++;
        t->kind = WS_TOK_NAME;
    } else if (*s == '.' && is(l, s + 1, C_ALPHA)) {
        l->cur = word_end(l, s + 1);
        t->kind = WS_TOK_DOT;
    } else if (*s == '"') {
        for (s++; s < l->end && *s != '"' && *s != '\n'; s++)
            if (*s == '\\' && s + 1 < l->end && s[1] != '\n')
                s++;
        l->cur = s;
        if (s >= l->end || *s != '"')
            return bad(t, "a string does not end on its line");
        l->cur++;
        t->kind = WS_TOK_STR;
        t->s++;
        t->len = s - t->s;
        return;
    } else {
        l->cur++;
        t->kind = (uint8_t)*s < 128 && *s > ' ' ? *s : WS_TOK_BAD;
        if (t->kind == WS_TOK_BAD)
            return bad(t, "a character that PTX does not use");
        for (size_t i = 0; i < WS_ARRAY_SIZE(pairs); i++)
            if (pairs[i].a == *s && s + 1 < l->end && pairs[i].b == s[1]) {
                t->kind = pairs[i].kind;
                l->cur++;
                break;
            }
    }
    t->len = l->cur - s;
}

/* Where modifiers that start at s end. */
static const char *mods_end(const struct ws_lex *l, const char *s)
{
    while (s < l->end && *s == '.' && is(l, s + 1, C_ALPHA | C_DIGIT))
        s = word_end(l, s + 1);
    return s;
}

void ws_lex_opcode(struct ws_lex *l, struct ws_tok *t, char *buf, size_t size)
{
    /* t->s + t->len == l->cur: the caller has not read past the name. */
    const char *e = mods_end(l, l->cur), *gap;
    t->len = e - t->s;
    for (gap = e; is(l, gap, C_SPACE);)
        gap++;
    l->cur = e;
    if (gap == e || gap >= l->end || *gap != '.' || !is(l, gap + 1, C_ALPHA | C_DIGIT))
        return;
    /* The rare "ld .global .u32": join the pieces. */
    size_t n = 0;
    for (const char *s = t->s;;) {
        if (n + (e - s) >= size)
            return; /* too long to be an opcode: the rest gives a syntax error */
        memcpy(buf + n, s, e - s);
        n += e - s;
        l->cur = e;
        for (s = e; is(l, s, C_SPACE);)
            s++;
        e = mods_end(l, s);
        if (e == s)
            break;
    }
    t->s = buf;
    t->len = n;
}

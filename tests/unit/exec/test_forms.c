// SPDX-License-Identifier: Apache-2.0
/* Every legal form of every instruction is either executed or refused by name: tests/ptx/forms.txt
 * lists them as templates, which are expanded here, each put into a kernel of its own, read and
 * decoded. What decodes is run by test_ops.c and its kin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/exec/fixture.h"

enum { MAX_FORM = 512, MAX_ALTS = 64 };
struct forms {
    struct fix f;
    char version[8], target[16];
    unsigned n, n_bad;
};

static void check_form(struct forms *s, const char *insn, bool refuse)
{
    char ptx[2048];
    snprintf(ptx, sizeof(ptx),
             ".version %s\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
             ".reg .pred %%p<4>; .reg .b8 %%b<4>; .reg .b16 %%h<8>; .reg .b32 %%r<10>;\n"
             ".reg .b64 %%x<10>; %s\n%s\nret;\n}\n",
             s->version, s->target, strstr(insn, "%q") ? ".reg .b128 %q<4>;" : "", insn);
    fix_init(&s->f);
    int r = fix_load(&s->f, ptx);
    const char *why = s->f.diags.n ? s->f.diags.v[0].text : "no diagnostic";
    s->n++;
    if (!refuse && r != 0) {
        s->n_bad++;
        print_error("not accepted: %s\n    %s\n", insn, why);
    } else if (refuse) {
        char op[32];
        sscanf(insn, "%31[a-z0-9_]", op);
        if (r == 0 || !s->f.diags.n || s->f.diags.v[0].line != 8 || !strstr(why, op)) {
            s->n_bad++;
            print_error("not refused by name: %s\n    %s\n", insn, why);
        }
    }
    fix_deinit(&s->f);
}

/* Expands the first group of alternatives in what is left of the template, and goes on behind
 * it. */
static void expand(struct forms *s, const char *t, char *out, size_t n, bool refuse)
{
    for (; *t && *t != '{'; t++) {
        if (*t == '\\')
            t++;
        assert_true(n < MAX_FORM - 1);
        out[n++] = *t;
    }
    out[n] = '\0';
    if (!*t) {
        check_form(s, out, refuse);
        return;
    }
    const char *end = t + 1;
    while (*end != '}') {
        end += *end == '\\' ? 2 : 1;
        assert_true(*end != '\0');
    }
    for (const char *a = t + 1;; a++) {
        size_t m = n;
        for (; *a != ',' && a != end; a++) {
            if (*a == '\\')
                a++;
            assert_true(m < MAX_FORM - 1);
            out[m++] = *a;
        }
        expand(s, end + 1, out, m, refuse);
        if (a == end)
            return;
    }
}

static void test_every_form_is_accepted(void **state)
{
    (void)state;
    struct forms s = {.n = 0};
    char line[MAX_FORM], out[MAX_FORM];
    const char *only = getenv("WS_FORMS_ONLY");
    FILE *in = fopen(WS_SRCDIR "/tests/ptx/forms.txt", "r");
    assert_non_null(in);
    while (fgets(line, sizeof(line), in)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        if (line[0] == '=')
            snprintf(s.version, sizeof(s.version), "%.7s", line + 2);
        else if (line[0] == '>')
            snprintf(s.target, sizeof(s.target), "%.15s", line + 2);
        else if (!only || strstr(line, only))
            expand(&s, line + (line[0] == '-'), out, 0, line[0] == '-');
    }
    fclose(in);
    print_message("%u forms, %u wrong\n", s.n, s.n_bad);
    assert_true(only || s.n > 3500);
    assert_int_equal(s.n_bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_form_is_accepted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* models: least squares and the event-rate power model. Expectations come from systems whose answer
 * is known beforehand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "models/lsq.h"
#include "models/power.h"

/* ten kernels on a plane: 40 W per compute rate, 500 W per memory rate, 0.3 W/K, 14 W */
static size_t plane(struct ws_power_sample *s)
{
    for (size_t i = 0; i < 10; i++) {
        s[i] = (struct ws_power_sample){0.02 + 0.021 * (double)(i * 3 % 10),
                                        0.005 + 0.004 * (double)(i * 7 % 10),
                                        2 + 2.1 * (double)(i * i % 10), 0};
        s[i].power_w = 14 + 40 * s[i].rate_comp + 500 * s[i].rate_gmem + 0.3 * s[i].delta_t_k;
    }
    return 10;
}

static void exact_plane(void **state)
{
    struct ws_power_sample s[10];
    size_t n = plane(s);
    struct ws_power_model p;
    assert_int_equal(ws_power_fit(&p, s, n, true, NULL), 0);
    assert_true(fabs(p.a_comp_w - 40) < 1e-9);
    assert_true(fabs(p.a_gmem_w - 500) < 1e-8);
    assert_true(fabs(p.k_t_w_per_k - 0.3) < 1e-10);
    assert_true(fabs(p.lambda_w - 14) < 1e-9);
    assert_true(p.rss < 1e-18);
    assert_true(fabs(ws_power_above_idle_w(&p, 0.1, 0.01, 10) - (14 + 4 + 5 + 3)) < 1e-9);
    struct ws_power_model q;
    assert_int_equal(ws_power_fit(&q, s, n, false, NULL), 0);
    assert_true(q.rss > 0.1); /* the temperature was needed */
    assert_false(q.with_temperature);
    assert_true(ws_power_above_idle_w(&q, 0.1, 0.01, 10) ==
                ws_power_above_idle_w(&q, 0.1, 0.01, 99));
}

/* Against the normal equations, solved by hand for y = a + b·x. */
static void line_fit(void **state)
{
    const double x[] = {1, 2, 4, 7, 11}, y[] = {2.1, 2.9, 6.2, 8.8, 14.9};
    double rows[10], b[5], sx = 0, sy = 0, sxx = 0, sxy = 0, rss = 0;
    for (int i = 0; i < 5; i++) {
        rows[2 * i] = 1;
        rows[2 * i + 1] = x[i];
        b[i] = y[i];
        sx += x[i];
        sy += y[i];
        sxx += x[i] * x[i];
        sxy += x[i] * y[i];
    }
    double slope = (5 * sxy - sx * sy) / (5 * sxx - sx * sx), at0 = (sy - slope * sx) / 5;
    for (int i = 0; i < 5; i++)
        rss += pow(y[i] - at0 - slope * x[i], 2);
    const char *names[] = {"constant", "x"};
    double got[2], got_rss;
    assert_int_equal(ws_lsq_solve(rows, b, 5, 2, names, "line", got, &got_rss, NULL), 0);
    assert_true(fabs(got[0] - at0) < 1e-12 && fabs(got[1] - slope) < 1e-12);
    assert_true(fabs(got_rss - rss) < 1e-12);
}

static void refused(const struct ws_power_sample *s, size_t n, bool t, const char *word)
{
    struct ws_diags d = WS_DIAGS_NULL;
    struct ws_power_model p = {.lambda_w = 77};
    assert_int_equal(ws_power_fit(&p, s, n, t, &d), -EINVAL);
    assert_int_equal(d.n, 1);
    if (!strstr(d.v[0].text, word))
        fail_msg("'%s' does not say '%s'", d.v[0].text, word);
    assert_true(p.lambda_w == 77);
    ws_diags_deinit(&d);
}

static void singular_fits(void **state)
{
    struct ws_power_sample s[10];
    size_t n = plane(s);
    refused(s, 3, true, "3 samples can't determine 4 unknowns");
    refused(s, 0, false, "0 samples");
    for (size_t i = 0; i < n; i++)
        s[i].delta_t_k = 5;
    refused(s, n, true, "deltaT_K follows from");
    for (size_t i = 0; i < n; i++)
        s[i].delta_t_k = 2 + 3 * s[i].rate_comp - 7 * s[i].rate_gmem;
    refused(s, n, true, "deltaT_K follows from");
    for (size_t i = 0; i < n; i++)
        s[i].rate_gmem = 0;
    refused(s, n, false, "rate_gmem is 0 in all");
    plane(s);
    s[4].power_w = NAN;
    refused(s, n, true, "sample 5");
    plane(s);
    s[9].rate_comp = INFINITY;
    refused(s, n, true, "sample 10: rate_comp");
}

static void energies(void **state)
{
    /* Two kernels, 60 W and 40 W above idle for 10 s alone, of which 10 W are there whatever runs;
     * together in 12 s. */
    const struct ws_power_alone parts[] = {{60, 10, 1}, {40, 10, 2}};
    assert_true(fabs(ws_power_mix_j(parts, 2, 10, 12) - (120 + 500 + 600)) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_plane),
        cmocka_unit_test(line_fit),
        cmocka_unit_test(singular_fits),
        cmocka_unit_test(energies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

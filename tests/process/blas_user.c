// SPDX-License-Identifier: Apache-2.0
/* A program that uses cuBLAS and cuBLASLt. What it computes is held against the definitions in the
 * reference manual of BLAS, computed here in double precision, one element after another. Like many
 * programs it opens both libraries itself, so it needs no toolkit. */
#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef double complex number;
enum { N, T, C };
enum { LOWER, UPPER };
enum { LEFT, RIGHT };

static void *blas, *handle;
static unsigned long failures, checks;

static void *find(const char *name)
{
    void *f = dlsym(blas, name);
    if (!f) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return f;
}
#define CALL(name, ...) ((int (*)())find(name))(__VA_ARGS__)
#define MUST(x)                                                                                    \
    do {                                                                                           \
        int r_ = (x);                                                                              \
        if (r_) {                                                                                  \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #x, r_);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* ---- memory ---- */
static void *cuda;
#define CUDA(name, ...) ((int (*)())dlsym(cuda, name))(__VA_ARGS__)

/* ---- types ---- */
struct type {
    char letter;
    int cuda, bytes; /* cudaDataType */
    bool is_complex;
    double eps;
};
static const struct type types[] = {{'S', 0, 4, false, 1e-6},
                                    {'D', 1, 8, false, 1e-14},
                                    {'C', 4, 8, true, 1e-6},
                                    {'Z', 5, 16, true, 1e-14}};
static const struct type half = {'H', 2, 2, false, 1e-3}, bf16 = {'B', 14, 2, false, 8e-3},
                         byte = {'I', 3, 1, false, 0}, word = {'W', 10, 4, false, 0},
                         e4m3 = {'4', 28, 1, false, 0.07}, e5m2 = {'5', 29, 1, false, 0.15};

static float of_half(uint16_t u)
{
    int e = u >> 10 & 31, f = u & 1023;
    double v = e == 31 ? INFINITY : e ? ldexp(1024 + f, e - 25) : ldexp(f, -24);
    return (float)(u >> 15 ? -v : v);
}
/* Eight bits with @m bits of mantissa and a bias of @b. */
static double of_eight(unsigned u, int m, int b)
{
    int e = (int)(u & 0x7f) >> m, f = (int)u & ((1 << m) - 1);
    double v = e ? ldexp((1 << m) + f, e - b - m) : ldexp(f, 1 - b - m);
    return u & 0x80 ? -v : v;
}
static number load(const struct type *t, const uint8_t *p, size_t k)
{
    uint32_t u;
    float f;
    switch (t->letter) {
    case 'S':
        return ((const float *)p)[k];
    case 'D':
        return ((const double *)p)[k];
    case 'C':
        return ((const float complex *)p)[k];
    case 'Z':
        return ((const number *)p)[k];
    case 'H':
        return of_half(((const uint16_t *)p)[k]);
    case 'B':
        u = (uint32_t)((const uint16_t *)p)[k] << 16;
        memcpy(&f, &u, 4);
        return f;
    case 'I':
        return ((const int8_t *)p)[k];
    case '4':
        return of_eight(p[k], 3, 7);
    case '5':
        return of_eight(p[k], 2, 15);
    default:
        return ((const int32_t *)p)[k];
    }
}
/* The values of these tests are exact in each type: of 16 and 8 bits only bits are drawn. */
static uint32_t drawn = 1;
static uint32_t draw(void)
{
    drawn = drawn * 1664525 + 1013904223;
    return drawn >> 8;
}
static double draw_real(void)
{
    return ((int)(draw() % 2001) - 1000) / 1000.0;
}
static void store_random(const struct type *t, uint8_t *p, size_t k)
{
    switch (t->letter) {
    case 'S':
        ((float *)p)[k] = (float)draw_real();
        break;
    case 'D':
        ((double *)p)[k] = draw_real();
        break;
    case 'C':
        ((float complex *)p)[k] = (float)draw_real() + I * (float)draw_real();
        break;
    case 'Z':
        ((number *)p)[k] = draw_real() + I * draw_real();
        break;
    case 'H': /* 2^-3 to 2 */
        ((uint16_t *)p)[k] =
            (uint16_t)((draw() & 1) << 15 | (12 + draw() % 4) << 10 | draw() % 1024);
        break;
    case 'B':
        ((uint16_t *)p)[k] =
            (uint16_t)((draw() & 1) << 15 | (124 + draw() % 4) << 7 | draw() % 128);
        break;
    case '4':
        p[k] = (uint8_t)((draw() & 1) << 7 | draw() % 0x48);
        break;
    case '5':
        p[k] = (uint8_t)((draw() & 1) << 7 | draw() % 0x48);
        break;
    case 'I':
        ((int8_t *)p)[k] = (int8_t)draw();
        break;
    default:
        ((int32_t *)p)[k] = (int32_t)draw() % 1000;
    }
}

/* ---- matrices: a copy here, and one on the device ---- */
struct matrix {
    const struct type *t;
    int rows, cols, ld;
    uint8_t *host;
    uint64_t device;
};
static size_t bytes_of(const struct matrix *m)
{
    return (size_t)m->ld * (size_t)(m->cols ? m->cols : 1) * (size_t)m->t->bytes;
}
static struct matrix make(const struct type *t, int rows, int cols)
{
    struct matrix m = {t, rows, cols, rows + 3, NULL, 0};
    m.host = malloc(bytes_of(&m));
    for (size_t k = 0; k < (size_t)m.ld * (size_t)cols; k++)
        store_random(t, m.host, k);
    MUST(CUDA("cuMemAlloc_v2", &m.device, bytes_of(&m)));
    MUST(CUDA("cuMemcpyHtoD_v2", m.device, m.host, bytes_of(&m)));
    return m;
}
static void drop(struct matrix *m)
{
    MUST(CUDA("cuMemFree_v2", m->device));
    free(m->host);
}
static number at(const struct matrix *m, int i, int j)
{
    return load(m->t, m->host, (size_t)i + (size_t)j * (size_t)m->ld);
}
static number op_at(const struct matrix *m, int op, int i, int j)
{
    number v = op == N ? at(m, i, j) : at(m, j, i);
    return op == C ? conj(v) : v;
}
/* Element of a symmetric (T), Hermitian (C) or triangular (N) matrix of which a triangle counts. */
static number tri_at(const struct matrix *m, int kind, int fill, bool unit, int i, int j)
{
    bool other = fill == LOWER ? i < j : i > j;
    if (kind == N)
        return other ? 0 : unit && i == j ? 1 : at(m, i, j);
    number v = other ? op_at(m, kind, i, j) : at(m, i, j);
    return kind == C && i == j ? creal(v) : v;
}

/* What the device has now, against @want(i, j), which sums about @n products. */
static void hold(const char *what, const struct matrix *m, const number *want, double n)
{
    uint8_t *got = malloc(bytes_of(m));
    double worst = 0;
    MUST(CUDA("cuMemcpyDtoH_v2", got, m->device, bytes_of(m)));
    for (int j = 0; j < m->cols; j++)
        for (int i = 0; i < m->rows; i++) {
            number d =
                load(m->t, got, (size_t)i + (size_t)j * (size_t)m->ld) - want[i + j * m->rows];
            double e = cabs(d) / (1 + cabs(want[i + j * m->rows]));
            worst = isnan(e) || e > worst ? e : worst;
        }
    /* Nothing between the columns is touched. */
    for (int j = 0; j < m->cols; j++)
        if (memcmp(got + ((size_t)j * (size_t)m->ld + (size_t)m->rows) * (size_t)m->t->bytes,
                   m->host + ((size_t)j * (size_t)m->ld + (size_t)m->rows) * (size_t)m->t->bytes,
                   3 * (size_t)m->t->bytes) != 0)
            worst = INFINITY;
    checks++;
    if (!(worst <= m->t->eps * (4 + sqrt(n)))) {
        fprintf(stderr, "%s: off by %g\n", what, worst);
        failures++;
    }
    free(got);
}

/* A scalar of the type. */
struct scalar {
    union {
        float s[2];
        double d[2];
        int32_t w;
    } as;
    number v;
};
static struct scalar scalar(const struct type *t, number v)
{
    struct scalar s = {.v = v};
    if (!t->is_complex)
        s.v = creal(v);
    if (t->letter == 'D' || t->letter == 'Z')
        s.as.d[0] = creal(v), s.as.d[1] = cimag(v);
    else if (t->letter == 'I')
        s.as.w = (int32_t)creal(v), s.v = s.as.w;
    else
        s.as.s[0] = (float)creal(v), s.as.s[1] = (float)cimag(v);
    return s;
}

static char *named(const char *pattern, char letter)
{
    static char name[64];
    snprintf(name, sizeof(name), pattern, letter);
    return name;
}

/* ---- products ---- */
static number *product(const struct matrix *a, int oa, const struct matrix *b, int ob, int k,
                       number alpha, number beta, const struct matrix *c)
{
    number *want = calloc((size_t)c->rows * (size_t)c->cols, sizeof(*want));
    for (int j = 0; j < c->cols; j++)
        for (int i = 0; i < c->rows; i++) {
            number sum = 0;
            for (int l = 0; l < k; l++)
                sum += op_at(a, oa, i, l) * op_at(b, ob, l, j);
            want[i + j * c->rows] = alpha * sum + (beta ? beta * at(c, i, j) : 0);
        }
    return want;
}

static void gemm(const struct type *t, int oa, int ob, int m, int n, int k, number alpha_,
                 number beta_, bool from_device)
{
    struct matrix a = make(t, oa == N ? m : k, oa == N ? k : m),
                  b = make(t, ob == N ? k : n, ob == N ? n : k), c = make(t, m, n);
    struct scalar alpha = scalar(t, alpha_), beta = scalar(t, beta_);
    number *want = product(&a, oa, &b, ob, k, alpha.v, beta.v, &c);
    uint64_t place = 0;
    const void *pa = &alpha.as, *pb = &beta.as;
    if (from_device) {
        MUST(CUDA("cuMemAlloc_v2", &place, (size_t)32));
        MUST(CUDA("cuMemcpyHtoD_v2", place, pa, (size_t)16));
        MUST(CUDA("cuMemcpyHtoD_v2", place + 16, pb, (size_t)16));
        pa = (const void *)place;
        pb = (const void *)(place + 16);
    }
    MUST(CALL("cublasSetPointerMode_v2", handle, (int)from_device));
    MUST(CALL(named("cublas%cgemm_v2", t->letter), handle, oa, ob, m, n, k, pa, a.device, a.ld,
              b.device, b.ld, pb, c.device, c.ld));
    MUST(CALL("cublasSetPointerMode_v2", handle, 0));
    char what[96];
    snprintf(what, sizeof(what), "%cgemm op %d %d, %d x %d x %d", t->letter, oa, ob, m, n, k);
    hold(what, &c, want, k);
    if (place)
        MUST(CUDA("cuMemFree_v2", place));
    free(want);
    drop(&a), drop(&b), drop(&c);
}

static void gemms(void)
{
    static const int sizes[][3] = {{70, 67, 37}, {33, 130, 65}, {1, 5, 40}, {40, 1, 33}, {9, 9, 0}};
    for (size_t t = 0; t < 4; t++) {
        for (int oa = N; oa <= C; oa++)
            for (int ob = N; ob <= C; ob++)
                gemm(&types[t], oa, ob, sizes[0][0], sizes[0][1], sizes[0][2], 1.5 - 0.5 * I,
                     0.25 + I, false);
        for (size_t s = 1; s < 5; s++)
            gemm(&types[t], N, s % 3, sizes[s][0], sizes[s][1], sizes[s][2], 2, s % 2, s % 2);
    }
}

/* Batches, by lists of addresses and by distances; also with sizes of 64 bits. */
static void batches(void)
{
    enum { M = 20, K = 11, BATCHES = 3 };
    for (size_t t = 0; t < 4; t++) {
        struct matrix a[BATCHES], b[BATCHES], c[BATCHES];
        uint64_t list[3 * BATCHES], place;
        struct scalar alpha = scalar(&types[t], 1 + I), beta = scalar(&types[t], -1);
        for (int k = 0; k < BATCHES; k++) {
            a[k] = make(&types[t], M, K), b[k] = make(&types[t], K, M),
            c[k] = make(&types[t], M, M);
            list[k] = a[k].device, list[BATCHES + k] = b[k].device;
            list[2 * BATCHES + k] = c[k].device;
        }
        MUST(CUDA("cuMemAlloc_v2", &place, sizeof(list)));
        MUST(CUDA("cuMemcpyHtoD_v2", place, list, sizeof(list)));
        MUST(CALL(named("cublas%cgemmBatched", types[t].letter), handle, N, N, M, M, K, &alpha.as,
                  place, a[0].ld, place + 8 * BATCHES, b[0].ld, &beta.as, place + 16 * BATCHES,
                  c[0].ld, BATCHES));
        for (int k = 0; k < BATCHES; k++) {
            number *want = product(&a[k], N, &b[k], N, K, alpha.v, beta.v, &c[k]);
            hold("batches by addresses", &c[k], want, K);
            free(want);
        }
        /* One b for all, three times the columns of a and c. */
        struct matrix wide_a = make(&types[t], M, K * BATCHES),
                      wide = make(&types[t], M, M * BATCHES);
        MUST(CALL(named("cublas%cgemmStridedBatched_64", types[t].letter), handle, N, N, (int64_t)M,
                  (int64_t)M, (int64_t)K, &alpha.as, wide_a.device, (int64_t)wide_a.ld,
                  (long long)wide_a.ld * K, b[0].device, (int64_t)b[0].ld, 0ll, &beta.as,
                  wide.device, (int64_t)wide.ld, (long long)wide.ld * M, (int64_t)BATCHES));
        number *want = calloc(M * M * BATCHES, sizeof(*want));
        for (int k = 0; k < BATCHES; k++) {
            struct matrix pa = wide_a, pc = wide;
            pa.host += (size_t)(k * K * pa.ld * pa.t->bytes), pa.cols = K;
            pc.host += (size_t)(k * M * pc.ld * pc.t->bytes), pc.cols = M;
            number *part = product(&pa, N, &b[0], N, K, alpha.v, beta.v, &pc);
            memcpy(want + k * M * M, part, sizeof(*part) * M * M);
            free(part);
        }
        hold("batches by distances", &wide, want, K);
        free(want);
        drop(&wide_a), drop(&wide);
        for (int k = 0; k < BATCHES; k++)
            drop(&a[k]), drop(&b[k]), drop(&c[k]);
        MUST(CUDA("cuMemFree_v2", place));
    }
}

/* Types that are told when the program runs. */
static void gemm_ex(const struct type *in, const struct type *out, int compute, int m, int n, int k)
{
    struct matrix a = make(in, k, m), b = make(in, k, n), c = make(out, m, n);
    const struct type *scalars = in->letter == 'I' ? in : &types[0];
    struct scalar alpha = scalar(scalars, 2), beta = scalar(scalars, 1);
    number *want = product(&a, T, &b, N, k, alpha.v, beta.v, &c);
    MUST(CALL("cublasGemmEx", handle, T, N, m, n, k, &alpha.as, a.device, in->cuda, a.ld, b.device,
              in->cuda, b.ld, &beta.as, c.device, out->cuda, c.ld, compute, -1));
    char what[64];
    snprintf(what, sizeof(what), "GemmEx %c to %c", in->letter, out->letter);
    hold(what, &c, want, k);
    free(want);
    drop(&a), drop(&b), drop(&c);
}

/* ---- symmetric and triangular matrices ---- */
static void symmetric(const struct type *t, int kind)
{
    enum { M = 21, K = 13 };
    char letter = t->letter;
    const char *mm = kind == C ? "cublas%chemm_v2" : "cublas%csymm_v2",
               *rk = kind == C ? "cublas%cherk_v2" : "cublas%csyrk_v2",
               *r2k = kind == C ? "cublas%cher2k_v2" : "cublas%csyr2k_v2";
    struct scalar alpha = scalar(t, 0.5 + I), beta = scalar(t, 2);
    for (int fill = LOWER; fill <= UPPER; fill++)
        for (int side = LEFT; side <= RIGHT; side++) {
            int n = side == LEFT ? M : K;
            struct matrix a = make(t, n, n), b = make(t, M, K), c = make(t, M, K);
            number *want = calloc(M * K, sizeof(*want));
            for (int j = 0; j < K; j++)
                for (int i = 0; i < M; i++) {
                    number sum = 0;
                    for (int l = 0; l < n; l++)
                        sum += side == LEFT ? tri_at(&a, kind, fill, false, i, l) * at(&b, l, j)
                                            : at(&b, i, l) * tri_at(&a, kind, fill, false, l, j);
                    want[i + j * M] = alpha.v * sum + beta.v * at(&c, i, j);
                }
            MUST(CALL(named(mm, letter), handle, side, fill, M, K, &alpha.as, a.device, a.ld,
                      b.device, b.ld, &beta.as, c.device, c.ld));
            hold("symm, hemm", &c, want, n);
            free(want);
            drop(&a), drop(&b), drop(&c);
        }
    for (int twice = 0; twice <= 1; twice++)
        for (int fill = LOWER; fill <= UPPER; fill++)
            for (int op = N; op <= (kind == C ? C : T); op += kind == C ? C : T) {
                struct matrix a = make(t, op == N ? M : K, op == N ? K : M),
                              b = make(t, op == N ? M : K, op == N ? K : M), c = make(t, M, M);
                number *want = calloc(M * M, sizeof(*want));
                number by = kind == C && !twice ? creal(alpha.v) : alpha.v;
                for (int j = 0; j < M; j++)
                    for (int i = 0; i < M; i++) {
                        number sum = 0;
                        for (int l = 0; l < K; l++) {
                            number ai = op_at(&a, op, i, l), aj = op_at(&a, op, j, l),
                                   bi = op_at(&b, op, i, l), bj = op_at(&b, op, j, l);
                            number other = twice ? bj : aj;
                            sum += by * ai * (kind == C ? conj(other) : other);
                            if (twice)
                                sum +=
                                    (kind == C ? conj(by) : by) * bi * (kind == C ? conj(aj) : aj);
                        }
                        bool counts = fill == LOWER ? i >= j : i <= j;
                        number v = sum + beta.v * at(&c, i, j);
                        if (kind == C && i == j)
                            v = creal(v);
                        want[i + j * M] = counts ? v : at(&c, i, j);
                    }
                if (twice)
                    MUST(CALL(named(r2k, letter), handle, fill, op, M, K, &alpha.as, a.device, a.ld,
                              b.device, b.ld, &beta.as, c.device, c.ld));
                else
                    MUST(CALL(named(rk, letter), handle, fill, op, M, K, &alpha.as, a.device, a.ld,
                              &beta.as, c.device, c.ld));
                hold("syrk, herk, syr2k, her2k", &c, want, 2 * K);
                free(want);
                drop(&a), drop(&b), drop(&c);
            }
}

static void triangular(const struct type *t)
{
    enum { M = 12, K = 9 };
    struct scalar alpha = scalar(t, 1.5);
    for (int which = 0; which < 24; which++) {
        int side = which % 2, fill = which / 2 % 2, unit = which / 4 % 2, op = which / 8;
        int n = side == LEFT ? M : K;
        struct matrix a = make(t, n, n), b = make(t, M, K), c = make(t, M, K);
        number *want = calloc(M * K, sizeof(*want)), *back = calloc(M * K, sizeof(*back));
        for (int j = 0; j < K; j++)
            for (int i = 0; i < M; i++) {
                number sum = 0;
                for (int l = 0; l < n; l++) {
                    int r = side == LEFT ? i : l, s = side == LEFT ? l : j;
                    number v = tri_at(&a, N, fill, unit, op == N ? r : s, op == N ? s : r);
                    v = op == C ? conj(v) : v;
                    sum += side == LEFT ? v * at(&b, l, j) : at(&b, i, l) * v;
                }
                want[i + j * M] = alpha.v * sum;
                back[i + j * M] = at(&b, i, j);
            }
        MUST(CALL(named("cublas%ctrmm_v2", t->letter), handle, side, fill, op, unit, M, K,
                  &alpha.as, a.device, a.ld, b.device, b.ld, c.device, c.ld));
        hold("trmm", &c, want, n);
        /* In place, and back again. Rows of small diagonal make equations that nobody solves, so of
         * those with diagonals only such as are near 1. */
        MUST(CALL(named("cublas%ctrmm_v2", t->letter), handle, side, fill, op, unit, M, K,
                  &alpha.as, a.device, a.ld, b.device, b.ld, b.device, b.ld));
        hold("trmm in place", &b, want, n);
        if (unit) {
            struct scalar by = scalar(t, 1 / 1.5);
            double eps = t->eps;
            struct type loose = *t;
            loose.eps = eps * 1000; /* of errors that grow with each row */
            b.t = &loose;
            MUST(CALL(named("cublas%ctrsm_v2", t->letter), handle, side, fill, op, unit, M, K,
                      &by.as, a.device, a.ld, b.device, b.ld));
            hold("trsm", &b, back, n);
        }
        free(want), free(back);
        drop(&a), drop(&b), drop(&c);
    }
}

/* ---- vectors ---- */
static void vectors(const struct type *t)
{
    enum { LENGTH = 1000 };
    struct matrix x = make(t, 2 * LENGTH, 1), y = make(t, LENGTH, 1);
    struct scalar alpha = scalar(t, 0.75 - I);
    number *want = calloc(LENGTH, sizeof(*want)), dot = 0, got;
    double norm = 0, sum = 0, found;
    int best = 0, place;
    for (int i = 0; i < LENGTH; i++) {
        number v = at(&x, 2 * i, 0);
        want[i] = alpha.v * at(&x, 2 * (LENGTH - 1 - i), 0) + at(&y, i, 0);
        dot += conj(v) * at(&y, i, 0);
        norm += creal(v) * creal(v) + cimag(v) * cimag(v);
        sum += fabs(creal(v)) + fabs(cimag(v));
        number w = at(&x, 2 * best, 0);
        if (fabs(creal(v)) + fabs(cimag(v)) > fabs(creal(w)) + fabs(cimag(w)))
            best = i;
    }
    uint8_t room[16] = {0};
    const char *prefix = t->letter == 'C' ? "Sc" : t->letter == 'Z' ? "Dz" : NULL;
    char name[64], own[2] = {t->letter, 0};
    MUST(CALL(named(t->is_complex ? "cublas%cdotc_v2" : "cublas%cdot_v2", t->letter), handle,
              LENGTH, x.device, 2, y.device, 1, room));
    got = load(t, room, 0);
    failures += !(cabs(got - dot) <= t->eps * LENGTH);
    snprintf(name, sizeof(name), "cublas%snrm2_v2", prefix ? prefix : own);
    MUST(CALL(name, handle, LENGTH, x.device, 2, room));
    found = t->letter == 'S' || t->letter == 'C' ? *(float *)room : *(double *)room;
    failures += !(fabs(found - sqrt(norm)) <= t->eps * LENGTH);
    snprintf(name, sizeof(name), "cublas%sasum_v2", prefix ? prefix : own);
    MUST(CALL(name, handle, LENGTH, x.device, 2, room));
    found = t->letter == 'S' || t->letter == 'C' ? *(float *)room : *(double *)room;
    failures += !(fabs(found - sum) <= t->eps * LENGTH);
    snprintf(name, sizeof(name), "cublasI%camax_v2", t->letter + 'a' - 'A');
    MUST(CALL(name, handle, LENGTH, x.device, 2, &place));
    failures += place != best + 1;
    checks += 4;
    MUST(CALL(named("cublas%caxpy_v2", t->letter), handle, LENGTH, &alpha.as, x.device, -2,
              y.device, 1));
    hold("axpy", &y, want, 2);
    MUST(CALL(named("cublas%cswap_v2", t->letter), handle, LENGTH, x.device, 2, y.device, 1));
    for (int i = 0; i < LENGTH; i++)
        want[i] = at(&x, 2 * i, 0);
    hold("swap", &y, want, 1);
    MUST(CALL(named("cublas%cscal_v2", t->letter), handle, LENGTH, &alpha.as, y.device, 1));
    for (int i = 0; i < LENGTH; i++)
        want[i] *= alpha.v;
    hold("scal", &y, want, 2);
    free(want);
    drop(&x), drop(&y);
}

static void matrix_and_vector(const struct type *t, int op)
{
    enum { M = 37, K = 21 };
    struct matrix a = make(t, M, K), x = make(t, op == N ? K : M, 1),
                  y = make(t, op == N ? M : K, 1);
    struct scalar alpha = scalar(t, 1 - I), beta = scalar(t, 0.5);
    int rows = y.rows, cols = x.rows;
    number *want = calloc(M * K, sizeof(*want));
    for (int i = 0; i < rows; i++) {
        for (int l = 0; l < cols; l++)
            want[i] += alpha.v * op_at(&a, op, i, l) * at(&x, l, 0);
        want[i] += beta.v * at(&y, i, 0);
    }
    MUST(CALL(named("cublas%cgemv_v2", t->letter), handle, op, M, K, &alpha.as, a.device, a.ld,
              x.device, 1, &beta.as, y.device, 1));
    hold("gemv", &y, want, cols);
    free(want);
    drop(&a), drop(&x), drop(&y);
}

/* C = alpha op(A) + beta B, and C = diag(x) A. */
static void by_element(const struct type *t)
{
    enum { M = 14, K = 9 };
    struct matrix a = make(t, K, M), b = make(t, M, K), c = make(t, M, K), x = make(t, M, 1);
    struct scalar alpha = scalar(t, 2 + I), beta = scalar(t, -1);
    number want[M * K];
    for (int j = 0; j < K; j++)
        for (int i = 0; i < M; i++)
            want[i + j * M] = alpha.v * op_at(&a, C, i, j) + beta.v * at(&b, i, j);
    MUST(CALL(named("cublas%cgeam", t->letter), handle, C, N, M, K, &alpha.as, a.device, a.ld,
              &beta.as, b.device, b.ld, c.device, c.ld));
    hold("geam", &c, want, 2);
    for (int j = 0; j < K; j++)
        for (int i = 0; i < M; i++)
            want[i + j * M] = at(&x, i, 0) * at(&b, i, j);
    MUST(CALL(named("cublas%cdgmm", t->letter), handle, LEFT, M, K, b.device, b.ld, x.device, 1,
              c.device, c.ld));
    hold("dgmm", &c, want, 1);
    drop(&a), drop(&b), drop(&c), drop(&x);
}

/* ---- cuBLASLt ---- */
static void *layout(const struct matrix *m, bool by_rows)
{
    void *l;
    int order = by_rows;
    MUST(CALL("cublasLtMatrixLayoutCreate", &l, m->t->cuda, (uint64_t)(by_rows ? m->cols : m->rows),
              (uint64_t)(by_rows ? m->rows : m->cols), (int64_t)m->ld));
    MUST(CALL("cublasLtMatrixLayoutSetAttribute", l, 1, &order, sizeof(order)));
    return l;
}

/* d = f(alpha a^T b + beta c + bias); all matrices may be said to stand in rows, which transposes
 * them. */
static void lt(const struct type *in, const struct type *out, unsigned epilogue, bool scaled)
{
    enum { M = 40, K = 33, COLS = 18 };
    struct matrix a = make(in, K, M), b = make(in, K, COLS), c = make(out, M, COLS),
                  d = make(out, M, COLS), bias = make(out, M, 1), scale = make(&types[0], 2, 1);
    struct scalar alpha = scalar(&types[0], 0.5), beta = scalar(&types[0], 1);
    number by = scaled ? at(&scale, 0, 0) * at(&scale, 1, 0) : 1;
    number *want = product(&a, T, &b, N, K, alpha.v * by, beta.v, &c);
    for (int j = 0; j < COLS; j++)
        for (int i = 0; i < M; i++) {
            double v = creal(want[i + j * M]) + (epilogue & 4 ? creal(at(&bias, i, 0)) : 0);
            if (epilogue & 2)
                v = fmax(v, 0);
            if (epilogue & 32)
                v = 0.5 * v * (1 + tanh(sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
            want[i + j * M] = v;
        }
    void *o, *la = layout(&a, false), *lb = layout(&b, false), *lc = layout(&c, false),
             *ld = layout(&d, false), *wishes;
    int op = T, n = 0;
    uint64_t as = scale.device, bs = scale.device + 4;
    struct {
        uint64_t algorithm[8];
        size_t workspace;
        int state;
        float waves;
        int reserved[4];
    } found;
    MUST(CALL("cublasLtMatmulDescCreate", &o, 68, 0));
    MUST(CALL("cublasLtMatmulDescSetAttribute", o, 3, &op, sizeof(op)));
    MUST(CALL("cublasLtMatmulDescSetAttribute", o, 7, &epilogue, sizeof(epilogue)));
    MUST(CALL("cublasLtMatmulDescSetAttribute", o, 8, &bias.device, (size_t)8));
    if (scaled) {
        MUST(CALL("cublasLtMatmulDescSetAttribute", o, 17, &as, sizeof(as)));
        MUST(CALL("cublasLtMatmulDescSetAttribute", o, 18, &bs, sizeof(bs)));
    }
    MUST(CALL("cublasLtMatmulPreferenceCreate", &wishes));
    MUST(CALL("cublasLtMatmulAlgoGetHeuristic", handle, o, la, lb, lc, ld, wishes, 1, &found, &n));
    MUST(n != 1 || found.state);
    MUST(CALL("cublasLtMatmul", handle, o, &alpha.as, a.device, la, b.device, lb, &beta.as,
              c.device, lc, d.device, ld, &found.algorithm, NULL, (size_t)0, NULL));
    hold("cublasLtMatmul", &d, want, K);
    MUST(CALL("cublasLtMatmulPreferenceDestroy", wishes));
    MUST(CALL("cublasLtMatmulDescDestroy", o));
    MUST(CALL("cublasLtMatrixLayoutDestroy", la) || CALL("cublasLtMatrixLayoutDestroy", lb) ||
         CALL("cublasLtMatrixLayoutDestroy", lc) || CALL("cublasLtMatrixLayoutDestroy", ld));
    free(want);
    drop(&a), drop(&b), drop(&c), drop(&d), drop(&bias), drop(&scale);
}

/* The code of a type that is nearest to @v; of two, the even one. */
static unsigned nearest(const struct type *t, double v)
{
    unsigned best = 0, codes = t->bytes == 1 ? 256 : 65536;
    double least = INFINITY;
    for (unsigned u = 0; u < codes; u++) {
        uint16_t code = (uint16_t)u;
        double is = creal(load(t, (const uint8_t *)&code, 0)), d = fabs(is - v);
        bool nan = t->letter == '4'   ? (u & 0x7f) == 0x7f
                   : t->letter == '5' ? (u & 0x7f) > 0x7b
                   : t->letter == 'H' ? (u & 0x7fff) > 0x7bff
                                      : (u & 0x7fff) > 0x7f7f;
        if (!nan && signbit(is) == signbit(v) && (d < least || (d == least && u % 2 == 0))) {
            best = u;
            least = d;
        }
    }
    return best;
}

/* Floats become other types: at random, and halfway between two codes. */
static void conversions(const struct type *t)
{
    enum { ROWS = 200 };
    struct matrix a = make(&types[0], ROWS, 1), b = make(&types[0], 1, 1), d = make(t, ROWS, 1);
    unsigned codes = t->bytes == 1 ? 128 : 32768, wrong = 0;
    float *v = (float *)a.host;
    void *o, *la = layout(&a, false), *lb = layout(&b, false), *ld = layout(&d, false);
    struct scalar alpha = scalar(&types[0], 1), beta = scalar(&types[0], 0);
    for (int i = 0; i < ROWS; i++) {
        uint16_t u = (uint16_t)(draw() % (codes - codes / 8)), w = (uint16_t)(u + 1);
        v[i] = (float)((creal(load(t, (uint8_t *)&u, 0)) + creal(load(t, (uint8_t *)&w, 0))) / 2);
        if (i % 2)
            v[i] = (float)(v[i] * (1 + draw_real() / 100));
        if (i % 3 == 0)
            v[i] = -v[i];
    }
    *(float *)b.host = 1;
    MUST(CUDA("cuMemcpyHtoD_v2", a.device, a.host, bytes_of(&a)));
    MUST(CUDA("cuMemcpyHtoD_v2", b.device, b.host, bytes_of(&b)));
    MUST(CALL("cublasLtMatmulDescCreate", &o, 68, 0));
    MUST(CALL("cublasLtMatmul", handle, o, &alpha.as, a.device, la, b.device, lb, &beta.as,
              d.device, ld, d.device, ld, NULL, NULL, (size_t)0, NULL));
    MUST(CUDA("cuMemcpyDtoH_v2", d.host, d.device, bytes_of(&d)));
    for (int i = 0; i < ROWS; i++) {
        unsigned got = t->bytes == 1 ? d.host[i] : ((uint16_t *)d.host)[i];
        wrong += got != nearest(t, v[i]);
    }
    checks++;
    if (wrong) {
        fprintf(stderr, "%u floats became wrong ones of type %c\n", wrong, t->letter);
        failures++;
    }
    drop(&a), drop(&b), drop(&d);
}

/* Of equal elements the first is the greatest, and the least. */
static void equal_elements(void)
{
    float same[700];
    uint64_t x;
    int place[2] = {0};
    /* Those that come later are looked at by threads that come first. */
    for (int i = 0; i < 700; i++)
        same[i] = i == 257 || i == 512 ? -2 : i == 259 || i == 514 ? 0.5f : 1;
    MUST(CUDA("cuMemAlloc_v2", &x, sizeof(same)));
    MUST(CUDA("cuMemcpyHtoD_v2", x, same, sizeof(same)));
    MUST(CALL("cublasIsamax_v2", handle, 700, x, 1, &place[0]));
    MUST(CALL("cublasIsamin_v2", handle, 700, x, 1, &place[1]));
    checks += 2;
    failures += (place[0] != 258) + (place[1] != 260);
    MUST(CUDA("cuMemFree_v2", x));
}

/* The same matrices, said to stand in rows: d^T = b^T a. */
static void lt_by_rows(void)
{
    enum { M = 20, K = 15, COLS = 12 };
    struct matrix a = make(&types[0], K, M), b = make(&types[0], COLS, K),
                  d = make(&types[0], COLS, M);
    struct scalar alpha = scalar(&types[0], 1), beta = scalar(&types[0], 0);
    number *want = product(&b, N, &a, N, K, 1, 0, &d);
    void *o, *la = layout(&a, true), *lb = layout(&b, true), *ld = layout(&d, true);
    MUST(CALL("cublasLtMatmulDescCreate", &o, 68, 0));
    MUST(CALL("cublasLtMatmul", handle, o, &alpha.as, a.device, la, b.device, lb, &beta.as,
              d.device, ld, d.device, ld, NULL, NULL, (size_t)0, NULL));
    hold("cublasLtMatmul by rows", &d, want, K);
    free(want);
    drop(&a), drop(&b), drop(&d);
}

/* What is wrong is refused, and nothing is computed. */
static void refused(void)
{
    struct matrix a = make(&types[0], 8, 8);
    struct scalar one = scalar(&types[0], 1);
    int r[] = {
        CALL("cublasSgemm_v2", NULL, N, N, 8, 8, 8, &one.as, a.device, 11, a.device, 11, &one.as,
             a.device, 11) != 1,
        CALL("cublasSgemm_v2", handle, N, N, -1, 8, 8, &one.as, a.device, 11, a.device, 11, &one.as,
             a.device, 11) != 7,
        CALL("cublasSgemm_v2", handle, N, N, 8, 8, 8, &one.as, a.device, 7, a.device, 11, &one.as,
             a.device, 11) != 7,
        CALL("cublasSgemm_v2", handle, 5, N, 8, 8, 8, &one.as, a.device, 11, a.device, 11, &one.as,
             a.device, 11) != 7,
        CALL("cublasStrsm_v2", handle, 2, 0, 0, 0, 8, 8, &one.as, a.device, 11, a.device, 11) != 7,
        CALL("cublasSgemv_v2", handle, N, 8, 8, &one.as, a.device, 11, a.device, 0, &one.as,
             a.device, 1) != 7,
        CALL("cublasSgetrfBatched", handle, 8, NULL, 8, NULL, NULL, 1) != 15,
    };
    for (size_t k = 0; k < sizeof(r) / sizeof(r[0]); k++) {
        checks++;
        if (r[k]) {
            fprintf(stderr, "refusal %zu is missing\n", k);
            failures++;
        }
    }
    number *same = calloc(64, sizeof(*same));
    for (int k = 0; k < 64; k++)
        same[k] = at(&a, k % 8, k / 8);
    hold("what was refused", &a, same, 1);
    free(same);
    drop(&a);
}

int main(void)
{
    cuda = dlopen("libcudart.so.13", RTLD_NOW);
    blas = dlopen("libcublas.so.13", RTLD_NOW);
    if (!cuda || !blas) {
        fprintf(stderr, "no library: %s\n", dlerror());
        return 1;
    }
    MUST(CALL("cublasCreate_v2", &handle));
    gemms();
    batches();
    gemm_ex(&half, &half, 68, 40, 30, 50);
    gemm_ex(&half, &types[0], 68, 40, 30, 50);
    gemm_ex(&bf16, &bf16, 68, 70, 30, 50);
    gemm_ex(&bf16, &types[0], 77, 3, 30, 50);
    gemm_ex(&byte, &word, 72, 40, 30, 50);
    for (size_t t = 0; t < 4; t++) {
        symmetric(&types[t], T);
        if (types[t].is_complex)
            symmetric(&types[t], C);
        triangular(&types[t]);
        vectors(&types[t]);
        for (int op = N; op <= C; op++)
            matrix_and_vector(&types[t], op);
        by_element(&types[t]);
    }
    lt(&types[0], &types[0], 1, false);
    lt(&types[0], &types[0], 4 | 2, false);
    lt(&types[0], &types[0], 4 | 32, false);
    lt(&half, &half, 4 | 32, false);
    lt(&bf16, &types[0], 4, false);
    lt(&e4m3, &types[0], 1, true);
    lt(&e5m2, &half, 4, true);
    lt(&half, &e4m3, 1, false);
    lt(&half, &e5m2, 1, false);
    conversions(&half);
    conversions(&bf16);
    conversions(&e4m3);
    conversions(&e5m2);
    lt_by_rows();
    equal_elements();
    refused();
    MUST(CALL("cublasDestroy_v2", handle));
    printf("%lu checks, %lu failed\n", checks, failures);
    return failures != 0;
}

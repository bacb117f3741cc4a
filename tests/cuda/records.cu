// SPDX-License-Identifier: Apache-2.0
// Uses structures with pointers: a search tree of wide nodes (one block for each query, one thread
// for each key), variable-length codes packed by atomics into a bit stream, and matches of many
// patterns in a text. Fails if a result differs from the CPU's.
#include <algorithm>
#include <vector>
#include "work.cuh"
#define WORK "records"

enum { ORDER = 64 };
struct tree_node {
    int child[ORDER + 1];
    int keys[ORDER + 1];
    bool is_leaf;
    short n_keys;
};
struct record {
    long long id;
    char tag;
    double value;
};

__global__ void find(const tree_node *nodes, const record *records, int height, const int *queries, record *answers)
{
    __shared__ int at, found;
    int t = threadIdx.x;
    if (t == 0) {
        at = 0;
        found = -1;
    }
    __syncthreads();
    for (int level = 0; level < height; level++) {
        int next = -1;
        const tree_node &n = nodes[at];
        if (t < n.n_keys && n.keys[t] <= queries[blockIdx.x] && (t + 1 == n.n_keys || queries[blockIdx.x] < n.keys[t + 1]))
            next = n.child[t];
        __syncthreads();
        if (next >= 0)
            at = next;
        __syncthreads();
    }
    const tree_node &leaf = nodes[at];
    if (leaf.is_leaf && t < leaf.n_keys && leaf.keys[t] == queries[blockIdx.x])
        found = leaf.child[t];
    __syncthreads();
    if (t == 0)
        answers[blockIdx.x] = found >= 0 ? records[found] : record{-1, '?', 0};
}

static int build(std::vector<tree_node> &nodes, const int *keys, int n, int first)
{
    int me = (int)nodes.size();
    nodes.emplace_back();
    tree_node node = {};
    if (n <= ORDER) {
        node.is_leaf = true;
        node.n_keys = n;
        for (int i = 0; i < n; i++) {
            node.keys[i] = keys[i];
            node.child[i] = first + i;
        }
    } else {
        int parts = ORDER, each = (n + parts - 1) / parts;
        for (int i = 0; i * each < n; i++) {
            node.keys[i] = keys[i * each];
            node.child[i] = build(nodes, keys + i * each, std::min(each, n - i * each), first + i * each);
            node.n_keys = i + 1;
        }
    }
    nodes[me] = node;
    return me;
}

static int test_tree()
{
    const int n = 3000, n_queries = 200;
    std::vector<tree_node> nodes;
    std::vector<int> keys(n), queries(n_queries);
    std::vector<record> records(n), got(n_queries);
    for (int i = 0; i < n; i++) {
        keys[i] = 3 * i + 5;
        records[i] = {(long long)i << 33, (char)('a' + i % 26), i * 0.5};
    }
    build(nodes, keys.data(), n, 0);
    for (int i = 0; i < n_queries; i++)
        queries[i] = work_random(i) % (3 * n + 20);
    tree_node *dn;
    record *dr, *da;
    int *dq;
    CHECK(cudaMalloc(&dn, nodes.size() * sizeof *dn));
    CHECK(cudaMalloc(&dr, n * sizeof *dr));
    CHECK(cudaMalloc(&da, n_queries * sizeof *da));
    CHECK(cudaMalloc(&dq, n_queries * sizeof *dq));
    CHECK(cudaMemcpy(dn, nodes.data(), nodes.size() * sizeof *dn, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dr, records.data(), n * sizeof *dr, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dq, queries.data(), n_queries * sizeof *dq, cudaMemcpyHostToDevice));
    find<<<n_queries, ORDER>>>(dn, dr, 1, dq, da);
    CHECK(cudaMemcpy(got.data(), da, n_queries * sizeof *da, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n_queries; i++) {
        int k = (queries[i] - 5) / 3;
        bool there = queries[i] >= 5 && (queries[i] - 5) % 3 == 0 && k < n;
        if (there ? got[i].id != records[k].id || got[i].tag != records[k].tag || got[i].value != records[k].value
                  : got[i].id != -1)
            return work_fail(WORK, "query %d of %d: %lld %c %g", i, queries[i], got[i].id, got[i].tag, got[i].value);
    }
    CHECK(cudaFree(dn));
    CHECK(cudaFree(dr));
    CHECK(cudaFree(da));
    CHECK(cudaFree(dq));
    return 0;
}

__global__ void pack(const unsigned char *text, const unsigned *codes, const unsigned char *lengths, const unsigned *places,
                     unsigned *bits, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned code = codes[text[i]], length = lengths[text[i]], at = places[i], word = at / 32, room = 32 - at % 32;
    if (length <= room) {
        atomicOr(&bits[word], code << (room - length));
    } else {
        atomicOr(&bits[word], code >> (length - room));
        atomicOr(&bits[word + 1], code << (32 - (length - room)));
    }
}

__global__ void matches(const char *text, int n, const char *patterns, int n_patterns, int length, int *first, int *counts)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, p = blockIdx.y;
    if (i + length > n || p >= n_patterns)
        return;
    for (int k = 0; k < length; k++)
        if (text[i + k] != patterns[p * length + k])
            return;
    atomicMin(&first[p], i);
    atomicAdd(&counts[p], 1);
}

static int test_text()
{
    const int n = 5000, n_patterns = 16, length = 3;
    std::vector<unsigned char> text(n), lengths(256);
    std::vector<unsigned> codes(256), places(n), bits, want;
    std::vector<char> patterns;
    for (int i = 0; i < n; i++)
        text[i] = 'a' + __builtin_ctzll(work_random(i) | 1 << 5);
    for (int k = 0; k < 6; k++) { // a: 1, b: 01, …
        codes['a' + k] = k < 5 ? 1 : 0;
        lengths['a' + k] = k < 5 ? k + 1 : 5;
    }
    unsigned at = 0;
    for (int i = 0; i < n; i++) {
        places[i] = at;
        at += lengths[text[i]];
    }
    want.assign(at / 32 + 2, 0);
    for (int i = 0; i < n; i++)
        for (unsigned k = 0; k < lengths[text[i]]; k++)
            if (codes[text[i]] >> (lengths[text[i]] - 1 - k) & 1)
                want[(places[i] + k) / 32] |= 0x80000000u >> (places[i] + k) % 32;
    bits.resize(want.size());
    unsigned char *dt, *dl;
    unsigned *dc, *dp, *db;
    CHECK(cudaMalloc(&dt, n));
    CHECK(cudaMalloc(&dl, 256));
    CHECK(cudaMalloc(&dc, 1024));
    CHECK(cudaMalloc(&dp, n * 4));
    CHECK(cudaMalloc(&db, bits.size() * 4));
    CHECK(cudaMemcpy(dt, text.data(), n, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dl, lengths.data(), 256, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dc, codes.data(), 1024, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dp, places.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(db, 0, bits.size() * 4));
    pack<<<(n + 127) / 128, 128>>>(dt, dc, dl, dp, db, n);
    CHECK(cudaMemcpy(bits.data(), db, bits.size() * 4, cudaMemcpyDeviceToHost));
    if (bits != want)
        return work_fail(WORK, "packed codes differ");
    for (int p = 0; p < n_patterns; p++)
        for (int k = 0; k < length; k++)
            patterns.push_back('a' + (p >> k) % 3);
    std::vector<int> first(n_patterns, 0x7f7f7f7f), counts(n_patterns), f(n_patterns), c(n_patterns);
    for (int p = 0; p < n_patterns; p++)
        for (int i = 0; i + length <= n; i++)
            if (!memcmp(&text[i], &patterns[p * length], length)) {
                first[p] = std::min(first[p], i);
                counts[p]++;
            }
    int *df, *dn;
    char *dq;
    CHECK(cudaMalloc(&df, n_patterns * 4));
    CHECK(cudaMalloc(&dn, n_patterns * 4));
    CHECK(cudaMalloc(&dq, patterns.size()));
    CHECK(cudaMemset(df, 0x7f, n_patterns * 4));
    CHECK(cudaMemset(dn, 0, n_patterns * 4));
    CHECK(cudaMemcpy(dq, patterns.data(), patterns.size(), cudaMemcpyHostToDevice));
    matches<<<dim3((n + 255) / 256, n_patterns), 256>>>((char *)dt, n, dq, n_patterns, length, df, dn);
    CHECK(cudaMemcpy(f.data(), df, n_patterns * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(c.data(), dn, n_patterns * 4, cudaMemcpyDeviceToHost));
    if (f != first || c != counts)
        return work_fail(WORK, "matches differ");
    for (void *p : {(void *)dt, (void *)dl, (void *)dc, (void *)dp, (void *)db, (void *)df, (void *)dn, (void *)dq})
        CHECK(cudaFree(p));
    return 0;
}

int main()
{
    return test_tree() || test_text() ? 1 : work_pass(WORK);
}

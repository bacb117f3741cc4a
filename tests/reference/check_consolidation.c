// SPDX-License-Identifier: Apache-2.0
/* Recomputes reference/consolidation: MWP-CWP, block dealing, mixes, the power regression, and the
 * paper's tables. The references have 10 to 12 digits, so results are equal within 1e-9 relative.
 * What an author printed rounded must agree in its last digit. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/consolidate.h"
#include "models/power.h"
#include "tests/reference/check.h"

#define DIGITS_12 1e-10
#define DIGITS_10 2e-9

/* ---- reading ---- */

static struct ws_mwp_kernel read_kernel(const struct ws_json_at *at)
{
    return (struct ws_mwp_kernel){
        .threads_per_block = (uint32_t)ws_json_integer(at, "threads_per_block", 1, 1024, true, 32),
        .n_blocks = (uint64_t)ws_json_integer(at, "blocks", 1, INT64_C(1) << 40, true, 1),
        .active_blocks_per_sm =
            (uint32_t)ws_json_integer(at, "active_blocks_per_sm", 1, 1024, true, 1),
        .comp_insts = ws_check_value(at, "comp_insts"),
        .coal_insts = ws_check_value(at, "coal_mem_insts"),
        .uncoal_insts = ws_check_value(at, "uncoal_mem_insts"),
        .uncoal_per_mw = ws_check_value(at, "uncoal_per_mw"),
        .synch_insts = ws_check_value(at, "synch_insts"),
    };
}

static struct ws_mwp_gpu read_gpu(const struct ws_json_at *at)
{
    return (struct ws_mwp_gpu){
        .name = "of the file",
        .n_sms = (uint32_t)ws_json_integer(at, "n_sm", 1, 4096, true, 1),
        .freq_ghz = ws_check_value(at, "freq_ghz"),
        .bandwidth_gb_per_s = ws_check_value(at, "bw_gbs"),
        .mem_latency_cycles = ws_check_value(at, "mem_ld"),
        .depart_uncoal_cycles = ws_check_value(at, "dep_uncoal"),
        .depart_coal_cycles = ws_check_value(at, "dep_coal"),
        .threads_per_warp = (uint32_t)ws_json_integer(at, "threads_per_warp", 1, 64, true, 32),
        .issue_cycles = ws_check_value(at, "issue_cycles"),
    };
}

static const struct ws_mwp_gpu *named_gpu(const struct ws_json_at *at)
{
    const char *name = ws_json_string(at, "hw", true);
    const struct ws_mwp_gpu *g = name ? ws_mwp_gpu_find(name) : NULL;
    if (name && !g)
        ws_json_bad(at->line, "hw", "%s is no GPU of the table", name);
    return g;
}

/* ---- MWP-CWP ---- */

static void compare_mwp(struct ws_check *c, const char *at_text, const struct ws_mwp_result *r,
                        const struct ws_json_at *ref, double digits)
{
    const struct {
        const char *key;
        double ours;
    } values[] = {
        {"mem_insts", r->mem_insts},
        {"total_insts", r->total_insts},
        {"mem_l_uncoal", r->mem_l_uncoal},
        {"mem_l_coal", r->mem_l_coal},
        {"weight_uncoal", r->weight_uncoal},
        {"weight_coal", r->weight_coal},
        {"mem_l", r->mem_l},
        {"departure_delay", r->departure_delay},
        {"mem_cycles", r->mem_cycles},
        {"comp_cycles", r->comp_cycles},
        {"load_bytes_per_warp", r->load_bytes_per_warp},
        {"N", r->n},
        {"active_sms", r->active_sms},
        {"active_blocks_per_sm", r->active_blocks_per_sm},
        {"rep", r->rep},
        {"mwp_without_bw_full", r->mwp_without_bw_full},
        {"mwp_without_bw", r->mwp_without_bw},
        {"bw_per_warp", r->bw_per_warp},
        {"bw_demand_one_warp_per_sm", r->bw_demand},
        {"mwp_peak_bw", r->mwp_peak_bw},
        {"mwp", r->mwp},
        {"cwp_full", r->cwp_full},
        {"cwp", r->cwp},
        {"exec_cycles_one_rep", r->one_rep_cycles},
        {"exec_cycles", r->exec_cycles},
        {"synch_cost", r->synch_cycles},
        {"total_cycles", r->total_cycles},
        {"time_us", r->time_us},
        {"cpi", r->cpi},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(values); i++) {
        struct ws_json_at v = ws_json_get(ref, values[i].key, true);
        if (!v.o) { /* missing, or null where nothing accesses memory */
            ws_check_number(c, ws_check_where("%s.%s", at_text, values[i].key), values[i].ours, 0,
                            0, 0);
            continue;
        }
        ws_check_number(c, ws_check_where("%s.%s", at_text, values[i].key), values[i].ours,
                        ws_check_value(ref, values[i].key), digits, 0);
    }
    const char *name = ws_json_string(ref, "case", true);
    if (name)
        ws_check_text(c, ws_check_where("%s.case", at_text), ws_mwp_case_name(r->c), name);
}

static void check_mwp(struct ws_check *c, const char *at_text, const struct ws_mwp_gpu *g,
                      const struct ws_mwp_kernel *k, enum ws_mwp_rule rule,
                      const struct ws_json_at *ref, double digits)
{
    struct ws_mwp_result r;
    if (ws_mwp_predict(&r, g, k, rule, &ref->line->diags)) {
        ref->line->bad = true;
        return;
    }
    compare_mwp(c, at_text, &r, ref, digits);
}

static bool match_mwp(const char *head, struct ws_json_line *first)
{
    return ws_check_has(first, (const char *const[]){"kernel", "recalled", "recommended", NULL}) &&
           !ws_check_has(first, (const char *const[]){"computed", NULL});
}

static void mwp_line(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    struct ws_json_at root = ws_json_root(l), kernel = ws_json_get(&root, "kernel", false);
    struct ws_json_at recalled = ws_json_get(&root, "recalled", false),
                      recommended = ws_json_get(&root, "recommended", false);
    const struct ws_mwp_gpu *g = named_gpu(&root);
    struct ws_mwp_kernel k = read_kernel(&kernel);
    if (l->bad)
        return;
    char text[64];
    snprintf(text, sizeof(text), "line %u recalled", l->number);
    check_mwp(c, text, g, &k, WS_MWP_RECALLED, &recalled, DIGITS_12);
    snprintf(text, sizeof(text), "line %u recommended", l->number);
    check_mwp(c, text, g, &k, WS_MWP_RECOMMENDED, &recommended, DIGITS_12);
}

static void check_mwp_file(struct ws_check *c)
{
    ws_check_lines(c, mwp_line, NULL);
}

const struct ws_check_kind ws_check_kind_mwp_cwp = {"MWP-CWP cases", match_mwp, check_mwp_file};

/* ---- worked examples ---- */

static bool match_worked(const char *head, struct ws_json_line *first)
{
    return ws_check_has(first,
                        (const char *const[]){"hw", "kernel", "computed", "type1_example", NULL});
}

/* Both rules give the ISCA example; each other example says which. */
static void worked_example(struct ws_check *c, const char *text, const struct ws_json_at *at,
                           const struct ws_json_at *hw, const struct ws_json_at *kernel)
{
    static const struct {
        const char *key;
        enum ws_mwp_rule rule;
    } results[] = {{"computed", WS_MWP_RECALLED},
                   {"recalled", WS_MWP_RECALLED},
                   {"recommended", WS_MWP_RECOMMENDED}};
    struct ws_mwp_gpu g = read_gpu(hw);
    struct ws_mwp_kernel k = read_kernel(kernel);
    if (at->line->bad)
        return;
    for (size_t i = 0; i < WS_ARRAY_SIZE(results); i++) {
        struct ws_json_at ref = ws_json_get(at, results[i].key, true);
        if (!ref.o)
            continue;
        char full[96];
        snprintf(full, sizeof(full), "%s.%s", text, results[i].key);
        check_mwp(c, full, &g, &k, results[i].rule, &ref, DIGITS_10);
    }
}

static void check_isca_rounded(struct ws_check *c, const struct ws_json_at *root,
                               const struct ws_json_at *hw, const struct ws_json_at *kernel)
{
    struct ws_json_at printed = ws_json_get(root, "recalled_from_paper", false);
    struct ws_mwp_gpu g = read_gpu(hw);
    struct ws_mwp_kernel k = read_kernel(kernel);
    struct ws_mwp_result r;
    if (root->line->bad || ws_mwp_predict(&r, &g, &k, WS_MWP_RECALLED, &root->line->diags))
        return;
    /* That paper rounded MWP to 2.28 (0.055 %) and went on with it. */
    ws_check_number(c, "recalled_from_paper.mwp", r.mwp, ws_check_value(&printed, "mwp"), 0, 0.005);
    ws_check_number(c, "recalled_from_paper.cwp", r.cwp, ws_check_value(&printed, "cwp"), 0, 0.5);
    ws_check_number(c, "recalled_from_paper.exec_cycles", r.exec_cycles,
                    ws_check_value(&printed, "exec_cycles"), 1e-3, 0);
    ws_check_number(c, "recalled_from_paper.synch_cost", r.synch_cycles,
                    ws_check_value(&printed, "synch_cost"), 1e-3, 0);
    ws_check_number(c, "recalled_from_paper.total", r.total_cycles,
                    ws_check_value(&printed, "total"), 1e-3, 0);
}

/* Their kernels are those of type1_example. */
static void check_mix_examples(struct ws_check *c, const struct ws_json_at *root)
{
    struct ws_json_at one = ws_json_get(root, "type1_example", false),
                      two = ws_json_get(root, "type2_example", false);
    struct ws_json_at kernels = ws_json_get(&one, "kernels", false),
                      result = ws_json_get(&one, "result", false);
    const struct ws_mwp_gpu *g = named_gpu(&one);
    struct ws_mix_part parts[2] = {0};
    for (size_t i = 0; i < 2; i++) {
        struct ws_json_at k = ws_json_item(&kernels, i);
        parts[i].kernel = read_kernel(&k);
    }
    if (root->line->bad)
        return;
    struct ws_mix m = WS_MIX_NULL;
    struct ws_mix_options o = {.policy = WS_DISPATCH_RR};
    if (ws_mix_predict(&m, g, parts, 2, &o, &root->line->diags) || m.type != 1) {
        ws_check_fail(c, "type1_example can't be predicted");
        ws_mix_deinit(&m);
        return;
    }
    ws_check_number(c, "type1_example.bw_demand", m.bw_demand,
                    ws_check_value(&result, "bw_demand_one_warp_per_sm"), DIGITS_10, 0);
    ws_check_number(c, "type1_example.total_cycles", m.total_cycles,
                    ws_check_value(&result, "total_cycles"), DIGITS_10, 0);
    struct ws_json_at cycles = ws_json_get(&result, "per_kernel_cycles", false),
                      alone = ws_json_get(&result, "per_kernel_alone_cycles", false);
    for (size_t i = 0; i < 2; i++) {
        struct ws_json_at a = ws_json_item(&cycles, i), b = ws_json_item(&alone, i);
        ws_check_number(c, ws_check_where("type1_example.per_kernel_cycles[%zu]", i), m.cycles[i],
                        ws_json_value(&a, 0, 1e18), DIGITS_10, 0);
        ws_check_number(c, ws_check_where("type1_example.per_kernel_alone_cycles[%zu]", i),
                        m.alone_cycles[i], ws_json_value(&b, 0, 1e18), DIGITS_10, 0);
    }
    parts[0].kernel.n_blocks = 15;
    parts[1].kernel.n_blocks = 45;
    struct ws_json_at first = ws_json_get(&two, "SM0_14", false),
                      rest = ws_json_get(&two, "SM15_29", false);
    if (ws_mix_predict(&m, g, parts, 2, &o, &root->line->diags) || m.n_groups != 2) {
        ws_check_fail(c, "type2_example can't be predicted");
        ws_mix_deinit(&m);
        return;
    }
    const struct ws_json_at *refs[] = {&first, &rest};
    for (size_t i = 0; i < 2; i++) {
        ws_check_number(c, ws_check_where("type2_example[%zu].N", i), m.groups[i].load.n,
                        ws_check_value(refs[i], "N"), DIGITS_10, 0);
        ws_check_number(c, ws_check_where("type2_example[%zu].total_cycles", i),
                        m.groups[i].total_cycles, ws_check_value(refs[i], "total_cycles"),
                        DIGITS_10, 0);
        const char *name = ws_json_string(refs[i], "case", true);
        if (name)
            ws_check_text(c, ws_check_where("type2_example[%zu].case", i),
                          ws_mwp_case_name(m.groups[i].load.c), name);
    }
    ws_check_integer(c, "type2_example.critical first SM", m.groups[0].first_sm, 0);
    ws_check_integer(c, "type2_example.critical last SM", m.groups[0].last_sm, 14);
    ws_check_bool(c, "type2_example.critical", m.groups[0].critical && !m.groups[1].critical, true);
    if (!ws_mix_predict(&m, g, parts + 1, 1, &o, &root->line->diags))
        ws_check_number(c, "type2_example.kernel1_alone_two_blocks", m.total_cycles,
                        ws_check_value(&two, "kernel1_alone_two_blocks"), DIGITS_10, 0);
    ws_mix_deinit(&m);
}

static void check_worked(struct ws_check *c)
{
    struct ws_json_line l;
    if (ws_json_file(c->path, &l)) {
        ws_check_fail(c, "can't be read");
        return;
    }
    struct ws_json_at root = ws_json_root(&l), hw = ws_json_get(&root, "hw", false),
                      kernel = ws_json_get(&root, "kernel", false);
    worked_example(c, "isca09", &root, &hw, &kernel);
    check_isca_rounded(c, &root, &hw, &kernel);
    static const char *const more[] = {"mixed_c1060", "compute_bound_c1060"};
    for (size_t i = 0; i < WS_ARRAY_SIZE(more); i++) {
        struct ws_json_at at = ws_json_get(&root, more[i], false);
        struct ws_json_at at_hw = ws_json_get(&at, "hw", false),
                          at_kernel = ws_json_get(&at, "kernel", false);
        worked_example(c, more[i], &at, &at_hw, &at_kernel);
    }
    check_mix_examples(c, &root);
    c->failed |= !ws_json_line_report(&l, stderr, "check");
    ws_json_line_deinit(&l);
}

const struct ws_check_kind ws_check_kind_mwp_worked = {"MWP-CWP worked examples", match_worked,
                                                       check_worked};

/* ---- block dealing ---- */

enum { MAX_KERNELS = 64 };

static void check_list(struct ws_check *c, const char *text, const struct ws_block_schedule *d,
                       uint32_t sm, const char *const *names, const struct ws_json_at *list,
                       const struct ws_json_at *starts)
{
    size_t n = ws_json_length(list, 1 << 20);
    ws_check_integer(c, ws_check_where("%s length of SM %u's list", text, sm), d->sms[sm].n_blocks,
                     (int64_t)n);
    uint32_t b = d->sms[sm].first;
    for (size_t i = 0; i < n && b != WS_DISPATCH_NONE; i++, b = d->blocks[b].next) {
        struct ws_json_at item = ws_json_item(list, i);
        const char *name = item.o ? json_object_get_string(item.o) : "?";
        ws_check_text(c, ws_check_where("%s lists[%u][%zu]", text, sm, i),
                      names[d->blocks[b].kernel], name);
        if (starts) {
            struct ws_json_at s = ws_json_item(starts, i);
            ws_check_number(c, ws_check_where("%s starts[%u][%zu]", text, sm, i),
                            d->blocks[b].start, ws_json_value(&s, 0, 1e18), DIGITS_12, 1e-9);
        }
    }
}

static void check_sm_list(struct ws_check *c, const char *what, const struct ws_json_at *list,
                          const struct ws_block_schedule *d, bool redealt)
{
    size_t n = ws_json_length(list, WS_DISPATCH_MAX_SMS), at = 0;
    for (uint32_t sm = 0; sm < d->n_sms; sm++) {
        bool listed = false;
        if (at < n) {
            struct ws_json_at item = ws_json_item(list, at);
            listed = ws_json_integer_value(&item, 0, WS_DISPATCH_MAX_SMS) == sm;
            at += listed;
        }
        ws_check_bool(c, ws_check_where("%s holds SM %u", what, sm),
                      redealt ? d->sms[sm].redealt : d->sms[sm].critical, listed);
    }
}

static void check_redealt(struct ws_check *c, const char *text, const struct ws_json_at *at,
                          const struct ws_block_schedule *d)
{
    struct ws_json_at redealt = ws_json_get(at, "redealt", true);
    ws_check_bool(c, ws_check_where("%s redealt", text), d->did_redeal, redealt.o != NULL);
    if (!redealt.o || !d->did_redeal)
        return;
    struct ws_json_at when = ws_json_item(&redealt, 0), sms = ws_json_item(&redealt, 1);
    ws_check_number(c, ws_check_where("%s redealt[0]", text), d->redealt_at,
                    ws_json_value(&when, 0, 1e18), DIGITS_12, 1e-9);
    char what[96];
    snprintf(what, sizeof(what), "%s redealt[1]", text);
    check_sm_list(c, what, &sms, d, true);
}

static bool match_dispatch(const char *head, struct ws_json_line *first)
{
    return ws_check_has(first, (const char *const[]){"n_sm", "occupancy", "policy", "model",
                                                     "kernels", "expected", NULL});
}

static void dispatch_line(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    struct ws_json_at root = ws_json_root(l), kernels = ws_json_get(&root, "kernels", false),
                      expected = ws_json_get(&root, "expected", false);
    struct ws_dispatch_kernel k[MAX_KERNELS];
    const char *names[MAX_KERNELS];
    struct ws_dispatch_in in = {
        .n_sms = (uint32_t)ws_json_integer(&root, "n_sm", 1, WS_DISPATCH_MAX_SMS, true, 1),
        .occupancy = (uint32_t)ws_json_integer(&root, "occupancy", 1, 1024, true, 1),
        .n_kernels = (uint32_t)ws_json_length(&kernels, MAX_KERNELS),
        .kernels = k,
    };
    const char *policy = ws_json_string(&root, "policy", true),
               *model = ws_json_string(&root, "model", true);
    if (policy && !ws_dispatch_policy_find(policy, &in.policy))
        ws_json_bad(l, "policy", "%s is none of redeal, rr, rr_restart, greedy", policy);
    if (model && !ws_dispatch_model_find(model, &in.model))
        ws_json_bad(l, "model", "%s is neither additive nor overlap", model);
    for (uint32_t i = 0; i < in.n_kernels; i++) {
        struct ws_json_at at = ws_json_item(&kernels, i);
        k[i].n_blocks = (uint32_t)ws_json_integer(&at, "blocks", 0, 1 << 24, true, 0);
        k[i].block_time = ws_check_value(&at, "block_time");
        names[i] = ws_json_string(&at, "name", true);
    }
    if (l->bad)
        return;
    struct ws_block_schedule *d = arg;
    if (ws_dispatch_run(d, &in, &l->diags)) {
        l->bad = true;
        return;
    }
    char text[64];
    snprintf(text, sizeof(text), "line %u", l->number);
    struct ws_json_at lists = ws_json_get(&expected, "lists", false),
                      starts = ws_json_get(&expected, "starts", false),
                      finish = ws_json_get(&expected, "finish", false),
                      critical = ws_json_get(&expected, "critical", false);
    ws_check_integer(c, ws_check_where("%s lists", text), in.n_sms,
                     (int64_t)ws_json_length(&lists, WS_DISPATCH_MAX_SMS));
    for (uint32_t sm = 0; sm < in.n_sms; sm++) {
        struct ws_json_at list = ws_json_item(&lists, sm), start = ws_json_item(&starts, sm),
                          end = ws_json_item(&finish, sm);
        check_list(c, text, d, sm, names, &list, &start);
        ws_check_number(c, ws_check_where("%s finish[%u]", text, sm), d->sms[sm].finish,
                        ws_json_value(&end, 0, 1e18), DIGITS_12, 1e-9);
    }
    ws_check_number(c, ws_check_where("%s makespan", text), d->makespan,
                    ws_check_value(&expected, "makespan"), DIGITS_12, 1e-9);
    char what[80];
    snprintf(what, sizeof(what), "%s critical", text);
    check_sm_list(c, what, &critical, d, false);
    check_redealt(c, text, &expected, d);
}

static void check_dispatch(struct ws_check *c)
{
    struct ws_block_schedule d = WS_DISPATCH_NULL;
    ws_check_lines(c, dispatch_line, &d);
    ws_dispatch_deinit(&d);
}

const struct ws_check_kind ws_check_kind_dispatch = {"block dealing", match_dispatch,
                                                     check_dispatch};

/* ---- scenarios 1 and 2 ---- */

static bool match_scenarios(const char *head, struct ws_json_line *first)
{
    return ws_check_has(first, (const char *const[]){"policies", "models", "scenario1", NULL});
}

static void check_scenario_energy(struct ws_check *c, const char *text, const struct ws_json_at *at)
{
    struct ws_json_at energy = ws_json_get(at, "energy", false);
    double singles = ws_check_value(&energy, "sum_of_singles_kJ"),
           merged = ws_check_value(&energy, "consolidated_kJ");
    ws_check_bool(c, ws_check_where("%s.energy.beneficial", text),
                  ws_mix_saves(merged, singles, INFINITY),
                  ws_json_bool(&energy, "beneficial", true, false));
}

static void check_scenario(struct ws_check *c, struct ws_mix *m, const struct ws_json_at *root,
                           const char *name)
{
    struct ws_json_at s = ws_json_get(root, name, false);
    struct ws_json_at order = ws_json_get(&s, "grid_order", false),
                      blocks = ws_json_get(&s, "blocks", false),
                      alone = ws_json_get(&s, "single_kernel_time_s", false),
                      block_times = ws_json_get(&s, "per_block_time_s", false),
                      policies = ws_json_get(&s, "policies", false);
    uint32_t n_sms = (uint32_t)ws_json_integer(&s, "n_sm", 1, 4096, true, 1);
    double measured = ws_check_value(&s, "measured_consolidated_s");
    const struct ws_mix_options additive = {.occupancy = 1};
    struct ws_mix_measured parts[MAX_KERNELS] = {0};
    const char *names[MAX_KERNELS];
    uint32_t n = (uint32_t)ws_json_length(&order, MAX_KERNELS);
    for (uint32_t i = 0; i < n; i++) {
        struct ws_json_at item = ws_json_item(&order, i);
        names[i] = json_object_get_string(item.o);
        parts[i].n_blocks = parts[i].alone_blocks =
            (uint32_t)ws_json_integer(&blocks, names[i], 1, 1 << 20, true, 1);
        parts[i].alone_time = ws_check_value(&alone, names[i]);
        /* The file has one block time for both models: the additive one. */
        ws_check_number(c, ws_check_where("%s.per_block_time_s.%s", name, names[i]),
                        ws_mix_block_time(&parts[i], n_sms, &additive),
                        ws_check_value(&block_times, names[i]), DIGITS_10, 0);
    }
    if (!policies.o || root->line->bad)
        return;
    json_object_object_foreach(policies.o, key, value)
    {
        (void)value;
        char policy[16], model[16], text[96];
        unsigned occ;
        struct ws_mix_options o = {0};
        snprintf(text, sizeof(text), "%s %s", name, key);
        if (sscanf(key, "%15[^/]/occ%u/%15s", policy, &occ, model) != 3 ||
            !ws_dispatch_policy_find(policy, &o.policy) ||
            !ws_dispatch_model_find(model, &o.model)) {
            ws_json_bad(root->line, text, "is no placement");
            return;
        }
        /* Block times as the file has them; the overlap model would read 45 blocks on 30 SMs
         * otherwise. */
        struct ws_dispatch_kernel k[MAX_KERNELS];
        for (uint32_t i = 0; i < n; i++)
            k[i] =
                (struct ws_dispatch_kernel){.n_blocks = parts[i].n_blocks,
                                            .block_time = ws_check_value(&block_times, names[i])};
        struct ws_dispatch_in in = {.n_sms = n_sms,
                                    .occupancy = occ,
                                    .policy = o.policy,
                                    .model = o.model,
                                    .n_kernels = n,
                                    .kernels = k};
        struct ws_block_schedule *d = &m->dispatch;
        if (ws_dispatch_run(d, &in, &root->line->diags))
            return;
        struct ws_json_at p = ws_json_get(&policies, key, false);
        ws_check_number(c, ws_check_where("%s makespan_s", text), d->makespan,
                        ws_check_value(&p, "makespan_s"), DIGITS_10, 0);
        ws_check_number(c, ws_check_where("%s error_vs_measured_pct", text),
                        100 * (d->makespan - measured) / measured,
                        ws_check_value(&p, "error_vs_measured_pct"), 1e-7, 0);
        char what[128];
        struct ws_json_at critical = ws_json_get(&p, "critical_SMs", false),
                          sm0 = ws_json_get(&p, "list_SM0", false),
                          sm15 = ws_json_get(&p, "list_SM15", false);
        snprintf(what, sizeof(what), "%s critical_SMs", text);
        check_sm_list(c, what, &critical, d, false);
        check_list(c, text, d, 0, names, &sm0, NULL);
        check_list(c, text, d, 15, names, &sm15, NULL);
        ws_check_number(c, ws_check_where("%s finish_SM0", text), d->sms[0].finish,
                        ws_check_value(&p, "finish_SM0"), DIGITS_10, 0);
        ws_check_number(c, ws_check_where("%s finish_SM15", text), d->sms[15].finish,
                        ws_check_value(&p, "finish_SM15"), DIGITS_10, 0);
        check_redealt(c, text, &p, d);
    }
    check_scenario_energy(c, name, &s);
}

static void check_scenarios(struct ws_check *c)
{
    struct ws_json_line l;
    if (ws_json_file(c->path, &l)) {
        ws_check_fail(c, "can't be read");
        return;
    }
    struct ws_json_at root = ws_json_root(&l);
    struct ws_mix m = WS_MIX_NULL;
    check_scenario(c, &m, &root, "scenario1");
    check_scenario(c, &m, &root, "scenario2");
    /* The paper's own reading, through the function that predicts from measured times. */
    static const struct {
        const char *name, *first, *second;
        uint32_t occupancy;
        const char *predicted;
    } expected[] = {{"scenario1", "E", "M", 1, "predicted_s"},
                    {"scenario2", "S", "B", 2, "predicted_additive_s"}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(expected) && !l.bad; i++) {
        struct ws_json_at s = ws_json_get(&root, expected[i].name, false);
        struct ws_json_at blocks = ws_json_get(&s, "blocks", false),
                          alone = ws_json_get(&s, "single_kernel_time_s", false),
                          e = ws_json_get(&s, "expected", false);
        const char *names[] = {expected[i].first, expected[i].second};
        struct ws_mix_measured parts[2] = {0};
        for (size_t k = 0; k < 2; k++) {
            parts[k].n_blocks = parts[k].alone_blocks =
                (uint32_t)ws_json_integer(&blocks, names[k], 1, 1 << 20, true, 1);
            parts[k].alone_time = ws_check_value(&alone, names[k]);
        }
        struct ws_mix_options o = {.policy = WS_DISPATCH_REDEAL,
                                   .occupancy = expected[i].occupancy};
        if (l.bad || ws_mix_measured(&m, 30, parts, 2, &o, &l.diags))
            break;
        struct ws_json_at critical = ws_json_get(&e, "critical_SMs", false),
                          list = ws_json_get(&e, "list_critical", false),
                          other = ws_json_get(&e, "list_other", false);
        ws_check_number(c, ws_check_where("%s.expected", expected[i].name), m.dispatch.makespan,
                        ws_check_value(&e, expected[i].predicted), DIGITS_10, 0);
        check_sm_list(c, "expected.critical_SMs", &critical, &m.dispatch, false);
        check_list(c, "expected critical", &m.dispatch, 0, names, &list, NULL);
        check_list(c, "expected other", &m.dispatch, 29, names, &other, NULL);
    }
    ws_mix_deinit(&m);
    c->failed |= !ws_json_line_report(&l, stderr, "check");
    ws_json_line_deinit(&l);
}

const struct ws_check_kind ws_check_kind_consolidation_scenarios = {
    "consolidation scenarios", match_scenarios, check_scenarios};

/* ---- mixes ---- */

static bool match_mixes(const char *head, struct ws_json_line *first)
{
    return ws_check_has(first, (const char *const[]){"type", "hw", "kernels", "expected", NULL});
}

static void check_group(struct ws_check *c, const char *text, const struct ws_mix *m, uint32_t i,
                        const struct ws_json_at *ref)
{
    const struct ws_mix_group *g = &m->groups[i];
    struct ws_json_at sms = ws_json_get(ref, "sms", false), mix = ws_json_get(ref, "mix", false);
    struct ws_json_at first = ws_json_item(&sms, 0), last = ws_json_item(&sms, 1);
    ws_check_integer(c, ws_check_where("%s.groups[%u].sms[0]", text, i), g->first_sm,
                     ws_json_integer_value(&first, 0, 4096));
    ws_check_integer(c, ws_check_where("%s.groups[%u].sms[1]", text, i), g->last_sm,
                     ws_json_integer_value(&last, 0, 4096));
    ws_check_integer(c, ws_check_where("%s.groups[%u].n_sms", text, i), g->n_sms,
                     ws_json_integer(ref, "n_sms", 1, 4096, true, 0));
    for (uint32_t k = 0; k < m->n_parts; k++) {
        char key[16];
        snprintf(key, sizeof(key), "%u", k);
        ws_check_integer(c, ws_check_where("%s.groups[%u].mix.%u", text, i, k), g->n_blocks[k],
                         ws_json_integer(&mix, key, 0, 1 << 20, false, 0));
    }
    const struct {
        const char *key;
        double ours;
    } values[] = {{"N", g->load.n},
                  {"mwp", g->load.mwp},
                  {"cwp", g->load.cwp},
                  {"total_cycles", g->total_cycles}};
    for (size_t v = 0; v < WS_ARRAY_SIZE(values); v++) {
        struct ws_json_at at = ws_json_get(ref, values[v].key, true);
        ws_check_number(c, ws_check_where("%s.groups[%u].%s", text, i, values[v].key),
                        values[v].ours, at.o ? ws_check_value(ref, values[v].key) : 0, DIGITS_12,
                        0);
    }
    const char *name = ws_json_string(ref, "case", true);
    if (name)
        ws_check_text(c, ws_check_where("%s.groups[%u].case", text, i), ws_mwp_case_name(g->load.c),
                      name);
}

static void check_type1(struct ws_check *c, const char *text, const struct ws_mix *m,
                        const struct ws_json_at *expected)
{
    ws_check_number(c, ws_check_where("%s.bw_demand_one_warp_per_sm", text), m->bw_demand,
                    ws_check_value(expected, "bw_demand_one_warp_per_sm"), DIGITS_12, 0);
    struct ws_json_at cycles = ws_json_get(expected, "per_kernel_cycles", false),
                      alone = ws_json_get(expected, "per_kernel_alone_cycles", false);
    for (uint32_t k = 0; k < m->n_parts; k++) {
        struct ws_json_at a = ws_json_item(&cycles, k), b = ws_json_item(&alone, k);
        ws_check_number(c, ws_check_where("%s.per_kernel_cycles[%u]", text, k), m->cycles[k],
                        ws_json_value(&a, 0, 1e18), DIGITS_12, 0);
        ws_check_number(c, ws_check_where("%s.per_kernel_alone_cycles[%u]", text, k),
                        m->alone_cycles[k], ws_json_value(&b, 0, 1e18), DIGITS_12, 0);
    }
}

static void check_type2(struct ws_check *c, const char *text, const struct ws_mix *m,
                        const struct ws_json_at *expected)
{
    struct ws_json_at groups = ws_json_get(expected, "groups", false),
                      critical = ws_json_get(expected, "critical", false);
    size_t n = ws_json_length(&groups, 4096);
    ws_check_integer(c, ws_check_where("%s.groups", text), m->n_groups, (int64_t)n);
    ws_check_integer(c, ws_check_where("%s.active_sms", text), m->active_sms,
                     ws_json_integer(expected, "active_sms", 1, 4096, true, 0));
    for (uint32_t i = 0; i < m->n_groups && i < n; i++) {
        struct ws_json_at g = ws_json_item(&groups, i);
        check_group(c, text, m, i, &g);
    }
    struct ws_json_at first = ws_json_item(&critical, 0);
    int64_t sm = ws_json_integer_value(&first, 0, 4096);
    for (uint32_t i = 0; i < m->n_groups; i++)
        if (m->groups[i].critical) {
            ws_check_integer(c, ws_check_where("%s.critical[0]", text), m->groups[i].first_sm, sm);
            break;
        }
}

static void mix_line(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    struct ws_json_at root = ws_json_root(l), kernels = ws_json_get(&root, "kernels", false),
                      expected = ws_json_get(&root, "expected", false);
    const struct ws_mwp_gpu *g = named_gpu(&root);
    struct ws_mix_part parts[WS_MIX_MAX_PARTS] = {0};
    uint32_t n = (uint32_t)ws_json_length(&kernels, WS_MIX_MAX_PARTS);
    for (uint32_t k = 0; k < n; k++) {
        struct ws_json_at at = ws_json_item(&kernels, k);
        parts[k].kernel = read_kernel(&at);
    }
    if (l->bad)
        return;
    struct ws_mix *m = arg;
    struct ws_mix_options o = {.policy = WS_DISPATCH_RR};
    if (ws_mix_predict(m, g, parts, n, &o, &l->diags)) {
        l->bad = true;
        return;
    }
    char text[64];
    snprintf(text, sizeof(text), "line %u", l->number);
    int type = (int)ws_json_integer(&root, "type", 1, 2, true, 0);
    ws_check_integer(c, ws_check_where("%s.type", text), m->type, type);
    if (m->type != type)
        return;
    if (type == 1)
        check_type1(c, text, m, &expected);
    else
        check_type2(c, text, m, &expected);
    ws_check_number(c, ws_check_where("%s.total_cycles", text), m->total_cycles,
                    ws_check_value(&expected, "total_cycles"), DIGITS_12, 0);
    struct ws_json_at rates = ws_json_get(&expected, "virtual_sm_rates", false);
    ws_check_number(c, ws_check_where("%s.virtual_sm_rates.comp", text), m->rate_comp,
                    ws_check_value(&rates, "comp"), DIGITS_12, 0);
    ws_check_number(c, ws_check_where("%s.virtual_sm_rates.gmem", text), m->rate_gmem,
                    ws_check_value(&rates, "gmem"), DIGITS_12, 0);
}

static void check_mixes(struct ws_check *c)
{
    struct ws_mix m = WS_MIX_NULL;
    ws_check_lines(c, mix_line, &m);
    ws_mix_deinit(&m);
}

const struct ws_check_kind ws_check_kind_mixes = {"consolidated mixes", match_mixes, check_mixes};

/* ---- power regression ---- */

static bool match_power(const char *head, struct ws_json_line *first)
{
    return ws_check_has(first, (const char *const[]){"training", "ols_with_temperature", NULL});
}

static void power_line(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    enum { MAX_SAMPLES = 4096 };
    struct ws_json_at root = ws_json_root(l), training = ws_json_get(&root, "training", false);
    size_t n = ws_json_length(&training, MAX_SAMPLES);
    struct ws_power_sample *samples = calloc(n ? n : 1, sizeof(*samples));
    for (size_t i = 0; i < n && samples; i++) {
        struct ws_json_at row = ws_json_item(&training, i);
        double v[4];
        for (size_t k = 0; k < 4; k++) {
            struct ws_json_at item = ws_json_item(&row, k);
            v[k] = ws_json_value(&item, -1e9, 1e9);
        }
        samples[i] = (struct ws_power_sample){v[0], v[1], v[2], v[3]};
    }
    for (int with = 0; with < 2 && samples && !l->bad; with++) {
        const char *key = with ? "ols_with_temperature" : "ols_without_temperature";
        struct ws_json_at ref = ws_json_get(&root, key, false);
        struct ws_power_model p;
        if (ws_power_fit(&p, samples, n, with, &l->diags)) {
            l->bad = true;
            break;
        }
        /* Coefficients to 12 digits; solving a system conditioned about 10^3 costs some of them. */
        const struct {
            const char *key;
            double ours;
        } values[] = {{"a_comp", p.a_comp_w},
                      {"a_gmem", p.a_gmem_w},
                      {"lam", p.lambda_w},
                      {"rss", p.rss},
                      {"k_T", p.k_t_w_per_k}};
        for (size_t i = 0; i < WS_ARRAY_SIZE(values) - !with; i++)
            ws_check_number(c, ws_check_where("line %u %s.%s", l->number, key, values[i].key),
                            values[i].ours, ws_check_value(&ref, values[i].key), 1e-9, 0);
    }
    free(samples);
}

static void check_power(struct ws_check *c)
{
    ws_check_lines(c, power_line, NULL);
}

const struct ws_check_kind ws_check_kind_power = {"power regression", match_power, check_power};

/* ---- the paper's tables ---- */

static bool match_tables(const char *head, struct ws_json_line *first)
{
    return ws_check_has(
        first, (const char *const[]){"table5_time_s", "single_instances", "derived", NULL});
}

/* "5E+15M": instances by the first letter of the workload's name. */
struct mix {
    struct {
        double gpu_s;
        uint32_t n, blocks;
    } parts[4];
    uint32_t n;
};

static bool read_mix(const char *text, const struct ws_json_at *singles, struct mix *ret)
{
    *ret = (struct mix){0};
    while (*text && ret->n < 4) {
        char *end;
        unsigned long n = strtoul(text, &end, 10);
        bool found = false;
        json_object_object_foreach(singles->o, name, value)
        {
            (void)value;
            if (name[0] != *end)
                continue;
            struct ws_json_at at = ws_json_get(singles, name, false);
            ret->parts[ret->n].n = (uint32_t)n;
            ret->parts[ret->n].gpu_s = ws_check_value(&at, "gpu_s");
            ret->parts[ret->n++].blocks =
                (uint32_t)ws_json_integer(&at, "blocks", 1, 1000, true, 1);
            found = true;
        }
        if (!found)
            return false;
        text = end + 1 + (end[1] == '+');
    }
    return ret->n > 0;
}

static void check_derived(struct ws_check *c, struct ws_mix *m, const struct ws_json_at *at,
                          const struct ws_json_at *singles)
{
    const char *name = ws_json_string(at, "mix", true);
    struct mix mix;
    if (!name || !read_mix(name, singles, &mix)) {
        ws_json_bad(at->line, at->path, "its mix can't be read");
        return;
    }
    struct ws_mix_measured parts[4];
    double serial = 0;
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < mix.n; i++) {
        parts[i] = (struct ws_mix_measured){.alone_time = mix.parts[i].gpu_s,
                                            .alone_blocks = mix.parts[i].blocks,
                                            .n_blocks = mix.parts[i].n * mix.parts[i].blocks};
        serial += mix.parts[i].n * mix.parts[i].gpu_s;
        blocks += parts[i].n_blocks;
    }
    struct ws_mix_options o = {.policy = WS_DISPATCH_REDEAL, .occupancy = 1};
    if (ws_mix_measured(m, 30, parts, mix.n, &o, &at->line->diags)) {
        at->line->bad = true;
        return;
    }
    ws_check_integer(c, ws_check_where("%s blocks_total", name), m->dispatch.n_blocks,
                     ws_json_integer(at, "blocks_total", 0, 1 << 20, true, 0));
    ws_check_number(c, ws_check_where("%s serial_sum_of_single_gpu_s", name), serial,
                    ws_check_value(at, "serial_sum_of_single_gpu_s"), DIGITS_10, 0);
    const char *type = ws_json_string(at, "type", true);
    ws_check_integer(c, ws_check_where("%s type", name), blocks <= 30 ? 1 : 2,
                     type && type[0] == '2' ? 2 : 1);
    ws_check_number(c, ws_check_where("%s type1_lower_bound_s", name), m->dispatch.makespan,
                    ws_check_value(at, "type1_lower_bound_s"), DIGITS_10, 0);
    ws_check_number(c, ws_check_where("%s manual_over_lower_bound", name),
                    ws_check_value(at, "manual_s") / m->dispatch.makespan,
                    ws_check_value(at, "manual_over_lower_bound"), 1e-7, 0);
    /* Serial is the sum of the singles to 0.4 s everywhere (facts, B5). */
    ws_check_number(c, ws_check_where("%s serial_measured_s", name), serial,
                    ws_check_value(at, "serial_measured_s"), 0, 0.45);
}

static void check_energies(struct ws_check *c, const struct ws_json_at *root, const char *time_key,
                           const char *energy_key)
{
    struct ws_json_at times = ws_json_get(root, time_key, false),
                      energies = ws_json_get(root, energy_key, false),
                      derived = ws_json_get(root, "derived", false);
    static const char *const runs[] = {"CPU", "Manual", "Dynamic", "Serial"};
    for (size_t i = 0; i < ws_json_length(&energies, 100); i++) {
        struct ws_json_at t = ws_json_item(&times, i), e = ws_json_item(&energies, i);
        const char *name = ws_json_string(&e, "mix", true);
        for (size_t k = 0; k < ws_json_length(&derived, 100); k++) {
            struct ws_json_at d = ws_json_item(&derived, k);
            const char *of = ws_json_string(&d, "mix", true);
            if (!name || !of || strcmp(name, of))
                continue;
            struct ws_json_at power = ws_json_get(&d, "avg_power_W", false);
            for (size_t r = 0; r < WS_ARRAY_SIZE(runs); r++)
                ws_check_number(c, ws_check_where("%s energy %s", name, runs[r]),
                                ws_check_value(&power, runs[r]) * ws_check_value(&t, runs[r]),
                                ws_check_value(&e, runs[r]), 1e-6, 0);
            /* Every mix saves energy against running serially and on the CPU: the models must
             * accept them all. */
            ws_check_bool(c, ws_check_where("%s accepted", name),
                          ws_mix_saves(ws_check_value(&e, "Dynamic"), ws_check_value(&e, "Serial"),
                                       ws_check_value(&e, "CPU")),
                          true);
        }
    }
}

static void check_tables(struct ws_check *c)
{
    struct ws_json_line l;
    if (ws_json_file(c->path, &l)) {
        ws_check_fail(c, "can't be read");
        return;
    }
    struct ws_json_at root = ws_json_root(&l);
    struct ws_json_at singles = ws_json_get(&root, "single_instances", false),
                      derived = ws_json_get(&root, "derived", false);
    struct ws_mix m = WS_MIX_NULL;
    for (size_t i = 0; i < ws_json_length(&derived, 100) && singles.o; i++) {
        struct ws_json_at d = ws_json_item(&derived, i);
        check_derived(c, &m, &d, &singles);
    }
    check_energies(c, &root, "table5_time_s", "table6_energy_J");
    check_energies(c, &root, "table7_time_s", "table8_energy_J");
    ws_mix_deinit(&m);
    c->failed |= !ws_json_line_report(&l, stderr, "check");
    ws_json_line_deinit(&l);
}

const struct ws_check_kind ws_check_kind_consolidation_tables = {"consolidation tables",
                                                                 match_tables, check_tables};

// SPDX-License-Identifier: Apache-2.0
#include "device/soft/timeline/crowd.h"

#include "base/macros.h"

/* Gauss-Legendre: points in (0, 1) and their weights. */
static const double at[WS_CROWD_POINTS] = {
    0.019855071751231884, 0.10166676129318664, 0.23723379504183550, 0.40828267875217510,
    0.59171732124782490,  0.76276620495816450, 0.89833323870681336, 0.98014492824876812};
static const double weight[WS_CROWD_POINTS] = {
    0.050614268145188130, 0.11119051722668724, 0.15685332293894364, 0.18134189168918100,
    0.18134189168918100,  0.15685332293894364, 0.11119051722668724, 0.050614268145188130};

void ws_crowd_init(struct ws_crowd *c, uint32_t n_sms)
{
    c->n_sms = n_sms;
    c->mw_per_sm = 0;
}

/* The first that issues finds all SMs quiet. */
static void begin(struct ws_crowd *c)
{
    for (uint32_t sm = 0; sm < c->n_sms; sm++)
        for (int i = 0; i <= WS_CROWD_POINTS; i++)
            c->quiet[sm][i] = 1;
}

void ws_crowd_join(struct ws_crowd *c, const uint64_t *sms, const struct ws_issue *issue)
{
    if (!(issue->mw_per_sm > 0))
        return;
    if (!(c->mw_per_sm > 0))
        begin(c);
    c->mw_per_sm = WS_MAX(c->mw_per_sm, issue->mw_per_sm);
    double factor[WS_CROWD_POINTS + 1];
    for (int i = 0; i < WS_CROWD_POINTS; i++)
        factor[i] = 1 - at[i] * (1 - issue->quiet);
    factor[WS_CROWD_POINTS] = issue->quiet;
    WS_SM_BITS_EACH(sm, sms)
    for (int i = 0; i <= WS_CROWD_POINTS; i++)
        c->quiet[sm][i] *= factor[i];
}

double ws_crowd_mw(const struct ws_crowd *c)
{
    double sum = 0;
    for (uint32_t sm = 0; c->mw_per_sm > 0 && sm < c->n_sms; sm++)
        sum += 1 - c->quiet[sm][WS_CROWD_POINTS];
    return sum * c->mw_per_sm;
}

double ws_crowd_share_mw(const struct ws_crowd *c, const uint64_t *sms,
                         const struct ws_issue *issue)
{
    double factor[WS_CROWD_POINTS], sum = 0;
    if (!(issue->mw_per_sm > 0))
        return 0;
    for (int i = 0; i < WS_CROWD_POINTS; i++)
        factor[i] = weight[i] / (1 - at[i] * (1 - issue->quiet));
    WS_SM_BITS_EACH(sm, sms)
    for (int i = 0; i < WS_CROWD_POINTS; i++)
        sum += factor[i] * c->quiet[sm][i];
    return sum * (1 - issue->quiet) * c->mw_per_sm;
}

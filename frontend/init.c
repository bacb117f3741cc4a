// SPDX-License-Identifier: Apache-2.0
#include "frontend/frontend.h"

static struct ws_config config;

const struct ws_config *ws_config(void)
{
    return &config;
}

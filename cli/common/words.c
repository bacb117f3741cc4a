// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/common/words.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/common/text.h"
#include "policy/policy.h"

enum { TASKS_TIMEOUT_MS = 300 };

static void print_policies(void)
{
    size_t n;
    const struct ws_policy_ops *const *all = ws_policy_all(&n);
    for (size_t i = 0; i < n; i++)
        puts(all[i]->name);
}

/* A GPU has a file of its own in the catalog, which is named after it. */
static void print_gpus(void)
{
    char *path =
        ws_cli_find_part("WATTSHARE_CATALOG", "../conf/gpu.d", SYSCONFDIR "/wattshare/gpu.d");
    DIR *d = path ? opendir(path) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        char *end = strstr(e->d_name, ".conf");
        if (end && !end[strlen(".conf")])
            printf("%.*s\n", (int)(end - e->d_name), e->d_name);
    }
    if (d)
        closedir(d);
    free(path);
}

static void print_experiments(void)
{
    static const char *const symbols[] = {
#define WS_EXPERIMENT(symbol) #symbol,
#include "papers/experiments/experiments.def"
#undef WS_EXPERIMENT
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(symbols); i++) {
        for (const char *p = symbols[i]; *p; p++)
            putchar(*p == '_' ? '-' : *p);
        putchar('\n');
    }
}

static void print_tasks(void)
{
    Ws__ServerMessage *m;
    if (ws_cli_ask_status(ws_cli_endpoint(NULL), TASKS_TIMEOUT_MS, &m))
        return;
    for (size_t i = 0; i < m->status->n_clients; i++) {
        const Ws__ClientStatus *c = m->status->clients[i];
        char task[64];
        ws_cli_clean(*c->work ? c->work : c->task, task, sizeof(task));
        if (*task)
            puts(task);
    }
    ws__server_message__free_unpacked(m, NULL);
}

bool ws_words_print(const char *kind)
{
    static const struct {
        const char *kind;
        void (*print)(void);
    } table[] = {{"policies", print_policies},
                 {"gpus", print_gpus},
                 {"experiments", print_experiments},
                 {"tasks", print_tasks}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(table); i++)
        if (!strcmp(table[i].kind, kind)) {
            table[i].print();
            return true;
        }
    return false;
}

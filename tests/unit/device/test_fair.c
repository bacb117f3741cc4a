// SPDX-License-Identifier: Apache-2.0
/* The soft device on a double of the interpreter: who gets the threads next. One thread, and all
 * work is there before the first turn, so that what is tested is an order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "device/payer.h"
#include "device/space.h"
#include "tests/unit/device/softdev_rig.h"

enum { MANY = 10, CLIENTS = MANY + 1, BLOCKS = 400 };
#define VAR_VA UINT64_C(0x10000000)

struct fixture {
    struct ws_device *device;
    struct ws_dmodule *module;
    struct client {
        struct ws_space *space;
        struct ws_dinstance *instance;
        struct ws_op op;
        struct double_params params;
        _Atomic int ran[BLOCKS];
        unsigned done; /* the how many-th it was; 0: not yet */
    } clients[CLIENTS];
    pthread_mutex_t lock;
    pthread_cond_t cond;
    unsigned n_done, n_begun; /* n_begun: when the first one was done */
};

static void setup_clients(struct fixture *f)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct client *c = &f->clients[i];
        uint64_t va[2] = {VAR_VA, VAR_VA + 4096};
        assert_int_equal(ws_space_new(&c->space), 0);
        assert_int_equal(ws_device_mem_alloc(f->device, c->space, VAR_VA, 8192), 0);
        assert_int_equal(ws_device_instance_new(f->device, f->module, c->space, va, &c->instance),
                         0);
    }
}

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){0};
    *state = &f;
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.cond, NULL);
    struct ws_device_options o = {.n_workers = 1};
    assert_int_equal(ws_device_open_soft(&f.device, &rig_spec, 0, &o, NULL), 0);
    assert_int_equal(ws_device_module_load(f.device, double_module(), &f.module, NULL), 0);
    setup_clients(&f);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < CLIENTS; i++) {
        ws_device_instance_free(f->device, f->clients[i].instance);
        ws_space_free(f->clients[i].space);
    }
    ws_device_module_unload(f->device, f->module);
    ws_device_close(f->device);
    return double_n_states != 0;
}

static unsigned n_begun(const struct fixture *f)
{
    unsigned n = 0;
    for (unsigned i = 0; i < CLIENTS; i++)
        n += f->clients[i].ran[0] != 0;
    return n;
}

static void done(struct ws_op *op)
{
    struct fixture *f = op->owner;
    pthread_mutex_lock(&f->lock);
    if (!f->n_done)
        f->n_begun = n_begun(f);
    WS_CONTAINER_OF(op, struct client, op)->done = ++f->n_done;
    pthread_cond_signal(&f->cond);
    pthread_mutex_unlock(&f->lock);
}

static void prepare(struct fixture *f, struct client *c, uint32_t blocks, uint64_t n_insns)
{
    c->params = (struct double_params){.kind = DOUBLE_WORK, .n_insns = n_insns, .ran = c->ran};
    c->op = (struct ws_op){.kind = WS_OPK_LAUNCH,
                           .space = c->space,
                           .done = done,
                           .owner = f,
                           .launch = {.instance = c->instance,
                                      .grid = {blocks, 1, 1},
                                      .block = {256, 1, 1},
                                      .params = &c->params,
                                      .param_bytes = sizeof(c->params)}};
}

/* The only thread is here: nothing runs before all work is there. */
static void submit_all(struct ws_op *op)
{
    struct fixture *f = op->owner;
    for (unsigned i = 0; i < CLIENTS; i++) {
        prepare(f, &f->clients[i], BLOCKS, 100000);
        ws_device_submit(f->device, &f->clients[i].op);
    }
}

static void run_all(struct fixture *f)
{
    struct client first = f->clients[0];
    prepare(f, &first, BLOCKS, 1000);
    first.op.done = submit_all;
    ws_device_submit(f->device, &first.op);
    pthread_mutex_lock(&f->lock);
    while (f->n_done < CLIENTS)
        pthread_cond_wait(&f->cond, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

/* One user's many clients have as many turns as another user's only one, which is therefore done
 * long before any of them. */
static void test_users_take_turns(void **state)
{
    struct fixture *f = *state;
    struct ws_payer *many = ws_payer_new(), *one = ws_payer_new();
    for (unsigned i = 0; i < MANY; i++)
        ws_space_set_payer(f->clients[i].space, many);
    ws_space_set_payer(f->clients[MANY].space, one);
    ws_payer_unref(many);
    ws_payer_unref(one);
    run_all(f);
    assert_int_equal(f->clients[MANY].done, 1);
}

/* The clients of a user take turns, too. */
static void test_clients_of_a_user_take_turns(void **state)
{
    struct fixture *f = *state;
    struct ws_payer *p = ws_payer_new();
    for (unsigned i = 0; i < CLIENTS; i++)
        ws_space_set_payer(f->clients[i].space, p);
    ws_payer_unref(p);
    run_all(f);
    assert_int_equal(f->n_begun, CLIENTS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_users_take_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clients_of_a_user_take_turns, setup, teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

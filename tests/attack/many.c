/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/many.c - attacks by number: of users, of connections that ask or leave half-way,
 * and of rows to be copied. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "tests/attack/attack.h"
#include "tests/attack/daemon.h"

/* ---- users ---- */

enum { FIRST_UID = 700000, N_UIDS = 65536 };

/* A client of user @uid, made by root. Return: Ws__Error, or -1. */
static int open_as(struct raw *r, const struct target *t, uid_t uid)
{
    int e = seteuid(uid) ? -1 : raw_open(r, t->sock, NULL);
    return seteuid(0) ? -1 : e;
}

/* Whether the daemon knows whose such a user ID is: the owner sees it on his account. */
static bool is_known(const struct target *t)
{
    struct raw r;
    if (open_as(&r, t, FIRST_UID))
        return false;
    bool known = !seteuid(UID_ATTACKER) && attack_charged(t, "clients");
    raw_close(&r);
    return !seteuid(0) && known;
}

/* Tells the daemon which other users the attacker can be in a container of its own. */
static bool tell_uids(const struct target *t, unsigned copy)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/subuid", t->dir);
    FILE *f = copy ? NULL : fopen(path, "w");
    if (f && (fprintf(f, "%d:%d:%d\n", UID_ATTACKER, FIRST_UID, N_UIDS) < 0 || fclose(f) ||
              kill(t->pid, SIGHUP)))
        return false;
    for (bool known = false; !known && attack_goes_on(t);) {
        known = is_known(t);
        if (!known)
            attack_sleep_ms(5);
    }
    return true;
}

/* As every user of Linux can, it is very many users. Each of them has a client with a little of
 * everything, and asks for something all the time. */
static const char *users(const struct target *t, unsigned copy)
{
    enum { USERS = 400, ALLOCATIONS = 50 };
    static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                              ".visible .entry k()\n{\nret;\n}\n";
    static struct raw r[USERS];
    Ws__MemAlloc alloc = WS__MEM_ALLOC__INIT;
    Ws__Launch l = raw_launch(1, 0);
    Ws__Sync sync = WS__SYNC__INIT;
    unsigned n = 0;
    sync.what_case = WS__SYNC__WHAT_DEVICE;
    alloc.bytes = 4096;
    if (!tell_uids(t, copy))
        return "the harness cannot say whose the user IDs are";
    for (; n < USERS && attack_goes_on(t); n++) {
        if (open_as(&r[n], t, FIRST_UID + copy * USERS + n))
            break;
        raw_load_begin(&r[n], 1, ptx, sizeof(ptx) - 1);
        for (unsigned i = 0; i < ALLOCATIONS; i++)
            raw_put(&r[n], WS__COMMAND__C_MEM_ALLOC, &alloc);
        raw_send(&r[n]);
    }
    while (attack_goes_on(t))
        for (unsigned i = 0; i < n && attack_goes_on(t); i++) {
            raw_put(&r[i], WS__COMMAND__C_LAUNCH, &l);
            raw_put(&r[i], WS__COMMAND__C_SYNC, &sync);
            raw_send(&r[i]);
        }
    return NULL;
}

/* ---- connections that are no clients ---- */

/* Very many connections of which each asks for the status several times before it reads an answer:
 * the daemon has a message of each, and more to read. */
static const char *questions(const struct target *t, unsigned copy)
{
    enum { CONNECTIONS = 4000, AT_ONCE = 3 };
    static int fd[CONNECTIONS];
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest q = WS__STATUS_REQUEST__INIT;
    unsigned n = 0;
    (void)copy;
    q.version = WS_PROTOCOL_VERSION;
    m.status = &q;
    for (; n < CONNECTIONS && attack_goes_on(t); n++) {
        fd[n] = raw_dial(t->sock);
        if (fd[n] < 0 || raw_greet(fd[n], "", 0))
            break;
    }
    while (attack_goes_on(t)) {
        for (unsigned i = 0; i < AT_ONCE * n && attack_goes_on(t); i++)
            (void)!raw_message(fd[i % n], &m);
        for (unsigned i = 0; i < AT_ONCE * n && attack_goes_on(t); i++) {
            Ws__ServerMessage *a = raw_receive(fd[i % n]);
            if (a)
                ws__server_message__free_unpacked(a, NULL);
        }
    }
    return NULL;
}

/* ---- uploads ---- */

/* Connections that leave in the middle of an image, as many as they can. */
static const char *abandoned(const struct target *t, unsigned copy)
{
    enum { PART = 64 << 10, AT_ONCE = 32 };
    static uint8_t part[PART];
    uint8_t sha256[WS_SHA256_BYTES] = {(uint8_t)copy};
    Ws__ModuleImage image = WS__MODULE_IMAGE__INIT;
    Ws__ModuleLoad load = WS__MODULE_LOAD__INIT;
    struct raw r[AT_ONCE];
    load.module = 1;
    image.image_bytes = load.image_bytes = 1 << 20;
    image.sha256 = load.sha256 = (ProtobufCBinaryData){sizeof(sha256), sha256};
    image.data = (ProtobufCBinaryData){PART, part};
    for (uint32_t i = 0; attack_goes_on(t); i++) {
        unsigned n = 0;
        memcpy(sha256 + 4, &i, sizeof(i)); /* all of them bring the same image */
        for (; n < AT_ONCE && attack_goes_on(t) && !raw_open(&r[n], t->sock, NULL); n++) {
            raw_put(&r[n], WS__COMMAND__C_MODULE_LOAD, &load);
            for (image.offset = 0; image.offset < (n % 4 + 1) * PART; image.offset += PART)
                raw_put(&r[n], WS__COMMAND__C_MODULE_IMAGE, &image);
            raw_send(&r[n]);
        }
        while (n)
            raw_close(&r[--n]);
    }
    return NULL;
}

/* ---- boxes ---- */

/* Copies and fills of very many rows of a byte, in many streams. */
static const char *boxes(const struct target *t, unsigned copy)
{
    enum { BYTES = 64 << 20, STREAMS = 256 };
    Ws__StreamCreate create = WS__STREAM_CREATE__INIT;
    Ws__MemAlloc alloc = WS__MEM_ALLOC__INIT;
    Ws__Fill fill = WS__FILL__INIT;
    Ws__Copy c = WS__COPY__INIT;
    struct raw r;
    (void)copy;
    alloc.bytes = BYTES;
    create.non_blocking = true;
    if (!attack_open(&r, t) || raw_call(&r, WS__COMMAND__C_MEM_ALLOC, &alloc, &c.dst) ||
        raw_call(&r, WS__COMMAND__C_MEM_ALLOC, &alloc, &c.src))
        return "a client was refused";
    for (unsigned i = 0; i < STREAMS; i++) {
        create.stream = WS_STREAM_FIRST + i;
        raw_put(&r, WS__COMMAND__C_STREAM_CREATE, &create);
    }
    fill.dst = c.dst;
    fill.value_bytes = c.bytes = fill.width_bytes = 1;
    fill.height = c.height = BYTES / 2;
    fill.pitch_bytes = c.dst_pitch = c.src_pitch = 2;
    while (attack_goes_on(t)) {
        for (unsigned i = 0; i < STREAMS; i++) {
            fill.stream = c.stream = WS_STREAM_FIRST + i;
            raw_put(&r, i % 2 ? WS__COMMAND__C_COPY : WS__COMMAND__C_FILL,
                    i % 2 ? (void *)&c : (void *)&fill);
        }
        if (raw_send(&r))
            return "a client that copies was refused";
        attack_sleep_ms(100);
    }
    return NULL;
}

const struct attack attacks_many[] = {
    {"10", "users", "a user that is 800 users", users, .owner = true, .copies = 2, .ms = 4000,
     .conf = "subordinate_uids = \"%DIR%/subuid\"\n"},
    {"7", "questions", "16,000 connections that ask for the status without waiting", questions,
     .copies = 4, .ms = 4000},
    {"10", "abandoned", "connections that leave in the middle of an image", abandoned, .copies = 2,
     .ms = 2000, .max_mib = 64},
    {"7", "boxes", "copies and fills of 33,000,000 rows of a byte", boxes, .ms = 2000},
    {0}};

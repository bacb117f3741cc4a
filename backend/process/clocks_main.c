// SPDX-License-Identifier: Apache-2.0
/* wattshare-clocks: sets the clocks of GPUs for the daemon, which has no right to do so itself
 * (device/cuda/clocks.h), and resets them afterwards.
 *
 * The first connection that sets a GPU's clocks owns the GPU. When that connection ends, by a
 * close, a crash or a kill, the GPU's clocks are reset. They are also reset when this process is
 * told to end.
 *
 * Before it touches a GPU's clocks, the process writes the GPU's name into the state folder; it
 * removes the name when the clocks have been reset. If the process dies in between, the next one
 * finds the name and resets the clocks; so does --reset (the unit's ExecStopPost=).
 *
 * The owner and the mode of the socket say who may connect. There is one thread. NVML is asked
 * only while somebody wants something to be set. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "backend/process/activation.h"
#include "backend/process/notify.h"
#include "base/log.h"
#include "base/macros.h"
#include "device/cuda/clocks.h"
#include "device/cuda/nvml.h"

#define DEFAULT_FOLDER "/run/wattshare-clocks"
enum { PEERS_MAX = 16, GPUS_MAX = 64, NAME_BYTES = 33 };

struct gpu {               /* whose clocks were set */
    char name[NAME_BYTES]; /* its UUID in hexadecimal digits */
    int peer;              /* index */
};
struct helper {
    const char *folder, *library;
    int peers[PEERS_MAX]; /* -1: free */
    struct gpu gpus[GPUS_MAX];
    uint32_t n_gpus;
};

static const char help[] =
    "usage: wattshare-clocks [--socket PATH] [--state FOLDER] [--nvml LIBRARY] [--reset]\n"
    "Sets GPUs' clocks for wattshared, and gives them their own back when it ends. Needs root.\n"
    "  --socket PATH   listen there, for this user only; a socket that systemd passes goes before\n"
    "  --state FOLDER  where it is noted whose clocks are set; " DEFAULT_FOLDER " without it\n"
    "  --nvml LIBRARY  libnvidia-ml.so.1 without it\n"
    "  --reset         undo what is noted there, and exit\n";

/* ---- GPUs ---- */

static void name_of(const uint8_t uuid[16], char name[NAME_BYTES])
{
    for (int i = 0; i < 16; i++)
        snprintf(name + 2 * (size_t)i, 3, "%02x", uuid[i]);
}

static bool uuid_of(const char *name, char uuid[16])
{
    if (strlen(name) != NAME_BYTES - 1 || strspn(name, "0123456789abcdef") != NAME_BYTES - 1)
        return false;
    for (int i = 0; i < 16; i++) {
        char digits[3] = {name[2 * i], name[2 * i + 1], 0};
        uuid[i] = (char)strtoul(digits, NULL, 16);
    }
    return true;
}

static int lock(const struct helper *h, const char *name, const struct ws_clocks_ask *q,
                struct ws_clocks_answer *a)
{
    char uuid[16], why[80] = "no such name";
    struct ws_nvml *n =
        uuid_of(name, uuid) ? ws_nvml_open(h->library, uuid, why, sizeof(why)) : NULL;
    if (!n) {
        snprintf(a->text, sizeof(a->text), "clocks can't be set: %s", why);
        return -ENODEV;
    }
    int r = ws_nvml_lock_clocks(n, q->core_mhz, q->memory_mhz, &a->core_mhz, &a->memory_mhz);
    if (r)
        snprintf(a->text, sizeof(a->text), "clocks can't be set: %s",
                 r == -EPERM     ? "NVML gives no permission (wattshare-clocks must be root)"
                 : r == -ENOTSUP ? "the GPU or its driver does not support it"
                                 : "NVML failed");
    ws_nvml_close(n);
    return r;
}

static void path_of(const struct helper *h, const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s.gpu", h->folder, name);
}

static int note(const struct helper *h, const char *name)
{
    char path[PATH_MAX];
    path_of(h, name, path);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

/* Return: whether the GPU has its own clocks again; if not the note stays. */
static bool give_back(const struct helper *h, const char *name)
{
    static const struct ws_clocks_ask own = {.version = WS_CLOCKS_VERSION};
    struct ws_clocks_answer a = {0};
    char path[PATH_MAX];
    int r = lock(h, name, &own, &a);
    if (r && r != -ENOTSUP) {
        ws_log(WS_ERROR, "clocks: uuid=%s its own clocks were not given back: %s", name, a.text);
        return false;
    }
    path_of(h, name, path);
    (void)unlink(path);
    ws_log(WS_INFO, "clocks: uuid=%s has its own clocks", name);
    return true;
}

/* What another helper left. Return: how many GPUs could not be helped. */
static int undo_noted(const struct helper *h)
{
    int n_bad = 0;
    DIR *dir = opendir(h->folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char name[NAME_BYTES];
        if (strlen(e->d_name) != NAME_BYTES + 3 || strcmp(e->d_name + NAME_BYTES - 1, ".gpu"))
            continue;
        memcpy(name, e->d_name, NAME_BYTES - 1);
        name[NAME_BYTES - 1] = 0;
        n_bad += !give_back(h, name);
    }
    if (dir)
        closedir(dir);
    return n_bad;
}

static struct gpu *find(struct helper *h, const char *name)
{
    for (uint32_t k = 0; k < h->n_gpus; k++)
        if (!strcmp(h->gpus[k].name, name))
            return &h->gpus[k];
    return NULL;
}

static void drop(struct helper *h, struct gpu *g)
{
    (void)give_back(h, g->name);
    *g = h->gpus[--h->n_gpus];
}

/* ---- peers ---- */

static void leave(struct helper *h, int peer)
{
    for (uint32_t k = h->n_gpus; k-- > 0;)
        if (h->gpus[k].peer == peer)
            drop(h, &h->gpus[k]);
    close(h->peers[peer]);
    h->peers[peer] = -1;
}

static void answer(struct helper *h, int peer, const struct ws_clocks_ask *q,
                   struct ws_clocks_answer *a)
{
    char name[NAME_BYTES];
    name_of(q->uuid, name);
    struct gpu *g = find(h, name);
    if (g && g->peer != peer) {
        a->error = -EBUSY;
        snprintf(a->text, sizeof(a->text), "clocks can't be set: another daemon has set them");
        return;
    }
    if (!q->core_mhz && !q->memory_mhz) {
        if (g)
            drop(h, g);
        return;
    }
    if (!g && h->n_gpus == GPUS_MAX)
        a->error = -ENODEV;
    else if (!g)
        a->error = note(h, name);
    if (a->error) {
        snprintf(a->text, sizeof(a->text), "clocks can't be set: %s: %s", h->folder,
                 strerror(-a->error));
        return;
    }
    if (!g) {
        g = &h->gpus[h->n_gpus++];
        memcpy(g->name, name, sizeof(name));
        g->peer = peer;
    }
    a->error = lock(h, name, q, a);
    if (a->error)
        drop(h, g);
    else
        ws_log(WS_INFO, "clocks: uuid=%s core_mhz=%u memory_mhz=%u", name, a->core_mhz,
               a->memory_mhz);
}

static void serve(struct helper *h, int peer)
{
    struct ws_clocks_ask q;
    struct ws_clocks_answer a = {.version = WS_CLOCKS_VERSION};
    ssize_t n = recv(h->peers[peer], &q, sizeof(q), MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != (ssize_t)sizeof(q) || q.version != WS_CLOCKS_VERSION) {
        if (n > 0)
            ws_log(WS_WARN, "clocks: a malformed message: the daemon is of another version");
        leave(h, peer);
        return;
    }
    answer(h, peer, &q, &a);
    if (send(h->peers[peer], &a, sizeof(a), MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(a))
        leave(h, peer);
}

static void welcome(struct helper *h, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    for (int k = 0; fd >= 0 && k < PEERS_MAX; k++)
        if (h->peers[k] < 0) {
            h->peers[k] = fd;
            return;
        }
    if (fd >= 0)
        close(fd);
}

static void run(struct helper *h, int listener, int signals)
{
    struct pollfd p[PEERS_MAX + 2];
    for (;;) {
        p[0] = (struct pollfd){signals, POLLIN, 0};
        p[1] = (struct pollfd){listener, POLLIN, 0};
        for (int k = 0; k < PEERS_MAX; k++)
            p[2 + k] = (struct pollfd){h->peers[k], POLLIN, 0};
        if (poll(p, WS_ARRAY_SIZE(p), -1) < 0)
            continue;
        if (p[0].revents)
            return;
        for (int k = 0; k < PEERS_MAX; k++)
            if (p[2 + k].revents)
                serve(h, k);
        if (p[1].revents)
            welcome(h, listener);
    }
}

/* ---- beginning ---- */

static int listen_at(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(a.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(a.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0177);
    (void)unlink(path);
    bool bound = fd >= 0 && !bind(fd, (const struct sockaddr *)&a, sizeof(a));
    umask(before);
    return bound && !listen(fd, PEERS_MAX) ? fd : -1;
}

/* The one that systemd passed, or one of our own. */
static int listener_get(const char *path)
{
    struct ws_activation a;
    ws_activation_read(&a);
    for (int k = 0; k < a.n; k++)
        if (a.v[k].type == SOCK_SEQPACKET)
            return a.v[k].fd;
    if (path)
        return listen_at(path);
    errno = EINVAL;
    return -1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"socket", required_argument, NULL, 's'}, {"state", required_argument, NULL, 'f'},
        {"nvml", required_argument, NULL, 'n'},   {"reset", no_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    struct helper h = {.folder = DEFAULT_FOLDER};
    const char *path = NULL;
    bool reset = false;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (c) {
        case 's':
            path = optarg;
            break;
        case 'f':
            h.folder = optarg;
            break;
        case 'n':
            h.library = optarg;
            break;
        case 'r':
            reset = true;
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            fputs(help, stderr);
            return 2;
        }
    if (reset)
        return undo_noted(&h) ? 1 : 0;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    int signals = signalfd(-1, &ends, SFD_CLOEXEC), listener = listener_get(path);
    if (mkdir(h.folder, 0700) && errno != EEXIST)
        ws_log(WS_WARN, "clocks: %s: %s", h.folder, strerror(errno));
    if (listener < 0 || signals < 0) {
        fprintf(stderr,
                "wattshare-clocks: %s: %s; --socket PATH, or a ListenSequentialPacket= of "
                "systemd's, is wanted\n",
                path ? path : "no socket", strerror(errno));
        return 1;
    }
    for (int k = 0; k < PEERS_MAX; k++)
        h.peers[k] = -1;
    (void)undo_noted(&h);
    ws_notify("READY=1");
    run(&h, listener, signals);
    ws_notify("STOPPING=1");
    for (int k = 0; k < PEERS_MAX; k++)
        if (h.peers[k] >= 0)
            leave(&h, k);
    if (path)
        (void)unlink(path);
    return 0;
}

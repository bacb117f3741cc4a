// SPDX-License-Identifier: Apache-2.0
/* wattshare keygen: a pair of keys for tcp://, the secret one for its owner's eyes only. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "cli/cli.h"
#include "protocol/curve.h"

/* A new file; what is there stays. */
static int write_file(const char *path, mode_t mode, const struct ws_curve_keys *k)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!f) {
        ws_cli_error("cannot make '%s': %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return 1;
    }
    fprintf(f, "public %s\n", k->public_key);
    if (k->secret_key[0])
        fprintf(f, "secret %s\n", k->secret_key);
    if (!fclose(f))
        return 0;
    ws_cli_error("cannot write '%s': %s", path, strerror(errno));
    return 1;
}

int ws_cli_keygen(int argc, char **argv)
{
    static const struct option options[] = {{0}};
    struct ws_curve_keys k, for_all = {{0}, {0}};
    char *public_path = NULL;
    int r;
    if (getopt_long(argc, argv, "", options, NULL) != -1 || optind + 1 != argc) {
        ws_cli_error("usage: wattshare keygen FILE; the secret key goes to FILE, the public one to "
                     "FILE.pub too");
        return WS_EXIT_USAGE;
    }
    if (zmq_curve_keypair(k.public_key, k.secret_key)) {
        ws_cli_error("this libzmq makes no keys: %s", zmq_strerror(errno));
        return 1;
    }
    memcpy(for_all.public_key, k.public_key, sizeof for_all.public_key);
    if (asprintf(&public_path, "%s.pub", argv[optind]) < 0)
        return 1;
    r = write_file(argv[optind], 0600, &k);
    if (!r)
        r = write_file(public_path, 0644, &for_all);
    explicit_bzero(&k, sizeof k);
    if (!r)
        puts(for_all.public_key);
    free(public_path);
    return r;
}

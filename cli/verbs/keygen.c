// SPDX-License-Identifier: Apache-2.0
/* wattshare keygen: makes a pair of keys for tcp://. Only the owner may read the secret one. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "cli/cli.h"
#include "cli/common/options.h"
#include "protocol/curve.h"

/* Makes a new file; an existing one is left alone. Return: the exit status. */
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

static const char *const arguments[] = {"FILE", NULL};
static const char *const examples[] = {"wattshare keygen ~/wattshare.key", NULL};

static int keygen(int argc, char **argv);

const struct ws_verb ws_verb_keygen = {
    .name = "keygen",
    .purpose = "make a pair of keys for using GPUs over the network",
    .about =
        "FILE gets both keys and is for its owner alone; FILE.pub gets the public key, which is "
        "printed, too. A file that exists is not overwritten.",
    .arguments = arguments,
    .examples = examples,
    .min_arguments = 1,
    .max_arguments = 1,
    .missing = "keygen needs the name of the file to make",
    .run = keygen,
};

static int keygen(int argc, char **argv)
{
    struct ws_curve_keys k, for_all = {{0}, {0}};
    char *public_path = NULL, **rest;
    int r = ws_verb_parse(&ws_verb_keygen, argc, argv, NULL, &rest);
    if (r >= 0)
        return r;
    if (zmq_curve_keypair(k.public_key, k.secret_key)) {
        ws_cli_error("libzmq cannot make keys: %s", zmq_strerror(errno));
        return 1;
    }
    memcpy(for_all.public_key, k.public_key, sizeof(for_all.public_key));
    if (asprintf(&public_path, "%s.pub", *rest) < 0)
        return 1;
    r = write_file(*rest, 0600, &k);
    if (!r)
        r = write_file(public_path, 0644, &for_all);
    explicit_bzero(&k, sizeof(k));
    if (!r)
        puts(for_all.public_key);
    free(public_path);
    return r;
}

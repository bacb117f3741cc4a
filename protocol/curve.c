// SPDX-License-Identifier: Apache-2.0
#include "protocol/curve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

/* Five of these stand for four bytes (rfc.zeromq.org/spec/32). */
static const char z85[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
enum { Z85_BASE = sizeof(z85) - 1 };

/* Whether @text could be a key: 40 characters of the z85 alphabet. */
static bool is_key(const char *text)
{
    return strlen(text) == WS_CURVE_TEXT_BYTES - 1 && strspn(text, z85) == WS_CURVE_TEXT_BYTES - 1;
}

bool ws_curve_decode(uint8_t ret[WS_CURVE_KEY_BYTES], const char *text)
{
    if (!is_key(text))
        return false;
    for (size_t i = 0; i < WS_CURVE_KEY_BYTES; i += 4) {
        uint64_t v = 0;
        for (int k = 0; k < 5; k++)
            v = v * Z85_BASE + (uint64_t)(strchr(z85, *text++) - z85);
        if (v > UINT32_MAX)
            return false;
        for (int k = 0; k < 4; k++)
            ret[i + (size_t)k] = (uint8_t)(v >> (24 - 8 * k));
    }
    return true;
}

void ws_curve_encode(char ret[WS_CURVE_TEXT_BYTES], const uint8_t key[WS_CURVE_KEY_BYTES])
{
    for (size_t i = 0; i < WS_CURVE_KEY_BYTES; i += 4, ret += 5) {
        uint32_t v = (uint32_t)key[i] << 24 | (uint32_t)key[i + 1] << 16 |
                     (uint32_t)key[i + 2] << 8 | key[i + 3];
        for (int k = 4; k >= 0; k--, v /= Z85_BASE)
            ret[k] = z85[v % Z85_BASE];
    }
    *ret = 0;
}

static int read_lines(FILE *f, struct ws_curve_keys *ret, unsigned *ret_line)
{
    char line[256], word[16], key[128], more[2];
    for (*ret_line = 1; fgets(line, sizeof(line), f); ++*ret_line) {
        int n = sscanf(line, "%15s %127s %1s", word, key, more);
        if (n <= 0 || word[0] == '#')
            continue;
        char *to = !strcmp(word, "public")   ? ret->public_key
                   : !strcmp(word, "secret") ? ret->secret_key
                                             : NULL;
        if (n != 2 || !to || to[0] || !is_key(key))
            return -EINVAL;
        memcpy(to, key, WS_CURVE_TEXT_BYTES);
    }
    return 0;
}

int ws_curve_read(const char *path, struct ws_curve_keys *ret, unsigned *ret_line)
{
    struct stat st;
    *ret = (struct ws_curve_keys){{0}, {0}};
    *ret_line = 0;
    FILE *f;
    int r = ws_file_open(&f, path, WS_FILE_TEXT_BYTES, &st);
    if (r)
        return r;
    r = read_lines(f, ret, ret_line);
    if (!r && ret->secret_key[0] && (st.st_mode & 07))
        r = -EPERM;
    fclose(f);
    return r;
}

static const char *read_or_say(const char *path, struct ws_curve_keys *ret, char *buf, size_t size)
{
    unsigned line;
    int r = ws_curve_read(path, ret, &line);
    if (!r)
        return NULL;
    if (r == -EPERM)
        snprintf(buf, size, "%s: others may read this secret key; chmod o= it", path);
    else if (r == -EINVAL)
        snprintf(buf, size, "%s:%u: this is not a line of a key file; `wattshare keygen` makes one",
                 path, line);
    else
        snprintf(buf, size, "%s: %s", path, ws_file_why(r));
    return buf;
}

const char *ws_curve_client(struct ws_curve_client *ret, char *buf, size_t size)
{
    const char *own = getenv(WS_ENV_KEY), *server = getenv(WS_ENV_SERVER_KEY), *wrong;
    struct ws_curve_keys keys;
    if (!own || !own[0] || !server || !server[0])
        return "tcp needs keys: set " WS_ENV_KEY " to the path of this client's key file "
               "(`wattshare keygen` makes one), and " WS_ENV_SERVER_KEY
               " to the daemon's public key, or a file with it";
    if ((wrong = read_or_say(own, &ret->own, buf, size)))
        return wrong;
    if (!ret->own.public_key[0] || !ret->own.secret_key[0]) {
        snprintf(buf, size, "%s: lacks the public or the secret key", own);
        return buf;
    }
    if (is_key(server)) {
        memcpy(ret->server, server, WS_CURVE_TEXT_BYTES);
        return NULL;
    }
    if ((wrong = read_or_say(server, &keys, buf, size)))
        return wrong;
    memcpy(ret->server, keys.public_key, WS_CURVE_TEXT_BYTES);
    if (ret->server[0])
        return NULL;
    snprintf(buf, size, "%s: has no public key", server);
    return buf;
}

// SPDX-License-Identifier: Apache-2.0
/* The library's side of wattshare.h. What the last job took comes with the answer to its end and is
 * kept here, so that asking for it costs no message. */
#define WATTSHARE_LIBRARY
#include "frontend/wattshare.h"

#include <pthread.h>
#include <string.h>

#include "base/log.h"
#include "frontend/session/private.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wattshare_job last;
static bool has_last;

/* One command, its answer, and our word for its error. @ret: NULL where there is none. */
static int ask(const char *what, const Ws__Command *m, Ws__Reply **ret)
{
    struct ws_channel *c;
    Ws__Reply *reply = NULL;
    *ret = NULL;
    if (ws_session_enter_anyway(&c))
        return WATTSHARE_ABSENT;
    int e = ws_channel_call(c, m, &reply);
    const char *text = reply && reply->text ? reply->text : "";
    int r;
    switch (e) {
    case WS__ERROR__OK:
        *ret = reply;
        return WATTSHARE_OK;
    case WS__ERROR__DISCONNECTED:
        r = WATTSHARE_ABSENT;
        break;
    case WS__ERROR__NOT_READY:
        r = WATTSHARE_OPEN;
        break;
    case WS__ERROR__INVALID_VALUE:
        r = WATTSHARE_NONE;
        break;
    case WS__ERROR__NOT_FOUND:
        r = WATTSHARE_UNKNOWN;
        break;
    case WS__ERROR__DENIED:
        r = WATTSHARE_DENIED;
        break;
    default:
        r = WATTSHARE_FAILED;
        ws_log(WS_ERROR, "%s: %s", what, text[0] ? text : "refused by the daemon");
    }
    if (r == WATTSHARE_FAILED && reply && reply->job)
        *ret = reply; /* the job has ended all the same */
    else
        ws_channel_reply_free(reply);
    return r;
}

int wattshare_job_begin(uint64_t deadline_ns)
{
    Ws__Reply *reply;
    Ws__JobBegin b = WS__JOB_BEGIN__INIT;
    b.deadline_ns = deadline_ns;
    int r = ask("wattshare_job_begin", WS_COMMAND(JOB_BEGIN, job_begin, &b), &reply);
    ws_channel_reply_free(reply);
    return r;
}

static void keep(const Ws__JobStats *s)
{
    pthread_mutex_lock(&lock);
    last = (struct wattshare_job){.release_ns = s->release_ns,
                                  .end_ns = s->end_ns,
                                  .response_ns = s->response_ns,
                                  .deadline_ns = s->deadline_ns,
                                  .energy_uj = s->energy_uj,
                                  .met = s->met};
    has_last = true;
    pthread_mutex_unlock(&lock);
}

int wattshare_job_end(void)
{
    Ws__Reply *reply;
    int r = ask("wattshare_job_end", WS_COMMAND(JOB_END, job_end, true), &reply);
    if (reply && reply->job)
        keep(reply->job);
    ws_channel_reply_free(reply);
    return r;
}

/* Programs that were compiled with an earlier wattshare.h look for these names. */
int wattshare_segment_begin(uint64_t deadline_ns) __attribute__((alias("wattshare_job_begin")));
int wattshare_segment_end(void) __attribute__((alias("wattshare_job_end")));

int wattshare_set_task(const char *name)
{
    Ws__Reply *reply;
    if (!name || !name[0])
        return WATTSHARE_UNKNOWN;
    int r = ask("wattshare_set_task", WS_COMMAND(SET_TASK, set_task, (char *)name), &reply);
    ws_channel_reply_free(reply);
    return r == WATTSHARE_NONE ? WATTSHARE_UNKNOWN : r;
}

int wattshare_wait_period(uint64_t *ret_release_ns)
{
    Ws__Reply *reply;
    int r = ask("wattshare_wait_period", WS_COMMAND(WAIT_PERIOD, wait_period, true), &reply);
    if (!r && ret_release_ns)
        *ret_release_ns = reply->value;
    ws_channel_reply_free(reply);
    return r;
}

uint64_t wattshare_now_ns(void)
{
    Ws__Reply *reply;
    int r = ask("wattshare_now_ns", WS_COMMAND(NOW, now, 0), &reply);
    uint64_t now = r ? 0 : reply->value;
    ws_channel_reply_free(reply);
    return now;
}

int wattshare_job_stats(struct wattshare_job *ret, size_t bytes)
{
    pthread_mutex_lock(&lock);
    bool has = has_last;
    if (has && ret) {
        memset(ret, 0, bytes); /* of a later version of the header: what is not known here is 0 */
        memcpy(ret, &last, bytes < sizeof(last) ? bytes : sizeof(last));
    }
    pthread_mutex_unlock(&lock);
    return has ? WATTSHARE_OK : ws_session_connect() ? WATTSHARE_ABSENT : WATTSHARE_NONE;
}

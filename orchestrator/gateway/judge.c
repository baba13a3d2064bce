/*
 * judge.c - see judge.h.
 *
 *   response                     fault               judgement
 *   none                         any                 network, retried unless trust or set-up
 *   status other than 2xx        any                 by status and body; 3xx is never followed
 *   2xx, document                none                an error in a 200, or no stream: failed
 *   2xx, stream with error       -                   by the error
 *   2xx, stream, end marker      any                 done
 *   2xx, stream, no end marker   any                 broken, retried (traps 58, 60, 77)
 */
#include "orchestrator/gateway/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

void judgement_release(struct judgement *j)
{
	verdict_release(&j->v);
}

/* A server may repeat the key that it refuses; nobody else gets to see it (I1). */
static void redact(char *text, const char *key)
{
	if (!key || strlen(key) < 4)
		return;
	for (char *at = text; (at = strstr(at, key)); at += strlen(key))
		memset(at, '*', strlen(key));
}

static void set_message(struct judgement *j, char *message)
{
	free(j->v.message);
	j->v.message = message;
}

static void judge_fault(const struct transfer_result *r, const struct provider *p,
			struct judgement *j)
{
	AUTO_FREE char *host = provider_host(p);
	j->v.class = CALL_NETWORK;
	j->v.retryable =
		r->fault != FAULT_TRUST && r->fault != FAULT_SETUP && r->fault != FAULT_PROXY;
	j->stalled = r->fault == FAULT_STALLED;
	j->unreached = r->fault == FAULT_CONNECT;
	j->immediate = r->stale;
	if (r->fault == FAULT_NONE)
		set_message(j, mem_printf("%s: the answer broke off before its end", host));
	else
		set_message(j, mem_printf("%s: %s", host, r->detail));
	snprintf(j->reason, sizeof(j->reason), "%s",
		 r->fault == FAULT_NONE ? "the answer broke off before its end" : r->detail);
}

static void name_status(struct judgement *j)
{
	struct buf line = BUF_INIT;
	text_printable(&line, j->v.message, MIN(strlen(j->v.message), 200), true);
	size_t n = text_floor(buf_str(&line), line.len, MIN(line.len, sizeof(j->reason) - 16));
	if (j->v.status)
		snprintf(j->reason, sizeof(j->reason), "status %d: %.*s", j->v.status, (int)n,
			 buf_str(&line));
	else
		snprintf(j->reason, sizeof(j->reason), "error: %.*s", (int)n, buf_str(&line));
	buf_release(&line);
}

static void judge_error(const struct transfer_result *r, const struct provider *p, int status,
			const struct buf *body, struct judgement *j)
{
	classify_error(status, buf_str(body), body->len, &j->v);
	redact(j->v.message, p->key);
	int64_t now = clock_wall_ms();
	j->asked_ms = retry_asked_ms(&r->hints, j->v.message, now);
	if (j->asked_ms < 0 && j->v.class == CALL_RATE_LIMIT) {
		j->asked_ms = retry_parse_text(buf_str(body)); /* Gemini: in the error's details */
		if (j->asked_ms < 0)
			j->asked_ms = limits_exhausted_ms(&r->limits, r->hints.server_date, now);
	}
	name_status(j);
	/* These cannot change by asking again, whatever a proxy in between advises. */
	bool final = j->v.class == CALL_OVERFLOW || j->v.class == CALL_AUTH ||
		     j->v.class == CALL_QUOTA || j->v.class == CALL_REFUSED;
	if (r->hints.should_retry == 0)
		j->v.retryable = false;
	else if (r->hints.should_retry == 1 && !final)
		j->v.retryable = true;
	/* OpenRouter: credits that come back say when. */
	if (j->v.status == 402 && (r->hints.after_ms >= 0 || r->hints.after_date >= 0))
		j->v.retryable = true;
}

static void judge_redirect(const struct transfer_result *r, const struct provider *p,
			   struct judgement *j)
{
	struct buf to = BUF_INIT;
	const char *location = r->location ? r->location : "";
	/* Signed addresses carry credentials behind the question mark. */
	text_printable(&to, location, strcspn(location, "?#"), true);
	j->v.class = CALL_BAD_REQUEST;
	j->v.status = r->status;
	j->v.max_retries = -1;
	set_message(j, mem_printf("'%s' redirects to '%s', which is not followed; set base_url to "
				  "the address that answers",
				  p->base_url, buf_str(&to)));
	redact(j->v.message, p->key);
	buf_release(&to);
	name_status(j);
}

static void judge_document(const struct transfer_result *r, const struct provider *p,
			   struct judgement *j)
{
	const char *type = r->content_type ? r->content_type : "no content type";
	if (classify_is_error(buf_str(&r->document), r->document.len)) {
		judge_error(r, p, r->status, &r->document, j);
		return;
	}
	AUTO_FREE char *host = provider_host(p);
	struct buf shown = BUF_INIT;
	text_printable(&shown, type, strlen(type), true);
	j->v.class = CALL_BAD_REQUEST;
	j->v.status = r->status;
	set_message(j,
		    mem_printf("%s answered with %s and not with a stream of events; is base_url "
			       "right?",
			       host, buf_str(&shown)));
	buf_release(&shown);
	name_status(j);
}

void judge_attempt(const struct transfer_result *r, const struct provider *p, struct judgement *ret)
{
	*ret = (struct judgement){.asked_ms = -1, .v = {.max_retries = -1, .status = r->status}};
	bool success = r->status >= 200 && r->status <= 299;
	if (r->status >= 300 && r->status <= 399)
		judge_redirect(r, p, ret);
	else if (r->status >= 400)
		judge_error(r, p, r->status, &r->document, ret);
	else if (success && r->stream && r->watch.failed)
		judge_error(r, p, 0, &r->watch.error, ret);
	else if (success && r->stream && r->watch.finished)
		ret->ok = true;
	else if (success && !r->stream && r->document.len && r->fault == FAULT_NONE)
		judge_document(r, p, ret);
	else
		judge_fault(r, p, ret);
}

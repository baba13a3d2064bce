/*
 * overflow.c - see overflow.h; the row numbers are those of wire.md 3.
 *
 * One answer is looked at alone. That a total stays the same over several answers (trap 84) is seen
 * by the ledger, which has the history; the sign here works with the first answer already.
 */
#include "agent/model/overflow.h"

enum {
	ESTIMATE_MIN = 2048, /* below it an estimate is mostly fixed parts and proves nothing */
};

/* The estimator is calibrated to a few per cent; half is no error of ours any more. */
static bool far_below(int64_t prompt, int64_t estimate)
{
	return estimate >= ESTIMATE_MIN && prompt > 0 && prompt < estimate * 6 / 10;
}

static int64_t total_tokens(const struct model_usage *u)
{
	return usage_prompt(u) + u->output;
}

bool answer_hints_overflow(const struct stream_answer *answer, int64_t window, int64_t estimate,
			   int64_t *ret_learned_window)
{
	const struct model_usage *u = &answer->usage;
	int64_t prompt = usage_prompt(u);
	*ret_learned_window = 0;
	if (answer->stop == STOP_WINDOW)
		return true;
	if (!u->known)
		return false;
	/* Rows 16 and 39: more went in than fits. Row 40: it was cut to fill the window. */
	if (window > 0 && prompt > window)
		return true;
	if (window > 0 && u->output == 0 && prompt >= window - window / 100)
		return true;
	/* Row 26: windows of local servers are multiples of 1,024, other totals hardly ever are. */
	int64_t total = total_tokens(u);
	if (far_below(prompt, estimate) && total >= 2048 && total % 1024 == 0) {
		*ret_learned_window = total;
		return true;
	}
	return false;
}

/*
 * calibration.c - rates of an estimator to JSON and back.
 *
 * Only what a usage taught in this process is written: a rate that came with the start document and
 * met no text would otherwise count again with every agent, and outweigh what was measured.
 */
#include "agent/calibration.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int kind_by_name(const char *name)
{
	for (int k = 0; k < TEXT_KINDS; k++)
		if (!strcmp(text_kind_name((enum text_kind)k), name))
			return k;
	return -1;
}

int calibration_read(struct estimator *estimator, struct json_object *rates)
{
	int passed_over = 0;

	if (!rates)
		return 0;
	json_object_object_foreach (rates, name, entry) {
		int kind = kind_by_name(name);
		double rate = json_double(entry, "rate", -1);
		int64_t tokens = json_i64(entry, "tokens", 0);

		if (kind < 0 || !isfinite(rate) || rate <= 0 || tokens <= 0)
			passed_over++;
		else
			estimator_recall(estimator, (enum text_kind)kind, rate, tokens);
	}
	return passed_over;
}

void calibration_write(const struct estimator *estimator, struct buf *out)
{
	const char *separator = "";

	buf_addc(out, '{');
	for (int k = 0; k < TEXT_KINDS; k++) {
		if (estimator->learned[k] <= 0)
			continue;
		buf_addf(out, "%s\"%s\":{\"rate\":%.4f,\"tokens\":%" PRId64 "}", separator,
			 text_kind_name((enum text_kind)k), estimator->rate[k],
			 estimator->learned[k]);
		separator = ",";
	}
	buf_addc(out, '}');
}

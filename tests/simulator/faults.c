/*
 * faults.c - the table of faults as data.
 */
#include "faults.h"

static const struct {
	const char *name;
	unsigned rate;
} rows[FAULT_COUNT] = {
#define FAULT_ROW(name, text, rate) [FAULT_##name] = {text, rate},
	FAULTS(FAULT_ROW)
#undef FAULT_ROW
};

const char *fault_name(enum fault fault)
{
	return fault < FAULT_COUNT ? rows[fault].name : "none";
}

enum fault fault_draw(struct random *r, enum fault from, enum fault to, unsigned percent)
{
	int64_t at = random_between(r, 0, 999999);

	for (int i = (int)from; i <= (int)to; i++) {
		at -= (int64_t)rows[i].rate * percent;
		if (at < 0)
			return (enum fault)i;
	}
	return FAULT_NONE;
}

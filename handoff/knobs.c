/*
 * knobs.c - the table of knobs.h as data.
 */
#include "handoff/knobs.h"

#include "base/memory.h"

static const struct knob knobs[] = {
#define KNOB_ROW(field, name, kind, min, max, dflt, help)                                          \
	{name, KNOB_##kind, min, max, dflt, help, offsetof(struct context_knobs, field)},
	CONTEXT_KNOBS(KNOB_ROW)
#undef KNOB_ROW
};

const struct knob *knob_table(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(knobs);
	return knobs;
}

void knobs_init(struct context_knobs *k)
{
	*k = (struct context_knobs){
#define KNOB_DEFAULT(field, name, kind, min, max, dflt, help) .field = (dflt),
		CONTEXT_KNOBS(KNOB_DEFAULT)
#undef KNOB_DEFAULT
	};
}

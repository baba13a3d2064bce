/*
 * fuzz_session.c - the session file of another tool, of any bytes: what is made of it can be written and read again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "fuzz.h"
#include "orchestrator/handoff_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct handoff *handoff = NULL, *again = NULL;
	struct import_counts counts;
	AUTO_BUF struct buf text = BUF_INIT;
	char path[64];
	AUTO_FD int fd = memfd_create("session", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (handoff_import(path, &handoff, &counts, NULL) < 0)
		return 0;
	handoff_to_markdown(handoff, &text);
	if (handoff_parse(buf_str(&text), text.len, &again, NULL) < 0)
		abort();
	handoff_free(handoff);
	handoff_free(again);
	return 0;
}

/*
 * gateway_main.c - the program baton-gateway: the only one that meets the network and the API keys.
 *
 * Started by the parent with the channel on descriptor 3 and a sealed file with the keys on 4. It
 * reads no file of a repository and is not dumpable: no debugger of the same user and no core file
 * shows the keys. It ends when the channel ends.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/log.h"
#include "orchestrator/gateway/server.h"
#include "orchestrator/gateway/settings.h"

enum { FD_CHANNEL = 3, FD_KEYS = 4 };

int main(void)
{
	AUTO_JSON struct json_object *keys = NULL;
	struct err err = ERR_INIT;

	log_init("gateway", LOG_WARN);
	if (prctl(PR_SET_DUMPABLE, 0)) {
		log_error("cannot protect the memory that holds the keys");
		return 1;
	}
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL);
	if (gateway_settings_read_keys(FD_KEYS, &keys, &err)) {
		log_error("%s", err.message);
		return 1;
	}
	close(FD_KEYS);
	if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
		log_error("cannot start curl");
		return 1;
	}
	int rc = server_run(FD_CHANNEL, keys, &err);
	if (rc)
		log_error("%s", err.message);
	curl_global_cleanup();
	return rc ? 1 : 0;
}

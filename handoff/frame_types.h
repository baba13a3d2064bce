/*
 * frame_types.h - the catalogue of all frames that pass between baton's processes.
 *
 * One row a type: FRAME(NAME, number, "wire name", senders, flags, max_body, fields)
 *   senders   who may send it: A agent, P parent, G gateway, W worktree service (baton-git)
 *   flags     FRAME_PARTS: the body is a document that may exceed one frame: it travels as several
 *             frames of the same type, all but the last with "more":true, and is joined by the
 *             reader up to max_body. FRAME_NO_BODY: len must be 0. FRAME_URGENT: overtakes other
 *             frames in the sender's queue (request too, so that its cancel cannot overtake it).
 *   max_body  the largest body in bytes (of the joined document for FRAME_PARTS)
 *   fields    header fields beside type, len, more: "name:kind" separated by blanks. Kinds: i is an
 *             integer >= 0, s a string, b a boolean; a '?' after the kind makes it optional.
 *             Unknown fields are ignored, so that a newer peer may say more.
 *
 * Numbers are never reused. docs/frames.md is the long form; it is checked against this table.
 *
 * A frame on the wire is one header line of JSON of at most 4,096 bytes with its newline,
 * {"type":"data","len":5,"req":3}\n, and len raw bytes, at most 65,536.
 */
#define FRAME_CATALOGUE(FRAME)                                                                     \
	/* Life of a peer. */                                                                      \
	FRAME(HELLO, 1, "hello", FROM_A | FROM_G | FROM_W, FRAME_NO_BODY, 0,                       \
	      "version:i role:s pid:i")                                                            \
	FRAME(START, 2, "start", FROM_P, FRAME_PARTS, 8 << 20, "")                                 \
	FRAME(PING, 3, "ping", FROM_A | FROM_P | FROM_G | FROM_W, FRAME_NO_BODY | FRAME_URGENT, 0, \
	      "seq:i")                                                                             \
	FRAME(PONG, 4, "pong", FROM_A | FROM_P | FROM_G | FROM_W, FRAME_NO_BODY | FRAME_URGENT, 0, \
	      "seq:i")                                                                             \
	FRAME(CONTROL, 5, "control", FROM_P, FRAME_PARTS, 1 << 20, "action:s reason:s?")           \
	FRAME(READY, 6, "ready", FROM_P | FROM_G | FROM_W, FRAME_PARTS, 1 << 20, "")               \
	/* Model calls (see call.h). */                                                            \
	FRAME(REQUEST, 10, "request", FROM_A | FROM_P, FRAME_NO_BODY | FRAME_URGENT, 0,            \
	      "req:i class:s provider:s model:s api:s length:i estimate:i max_tokens:i agent:s? "  \
	      "attempt:i? beta:s?")                                                                \
	FRAME(WAITING, 11, "waiting", FROM_P | FROM_G, FRAME_NO_BODY, 0,                           \
	      "req:i reason:s until:i?")                                                           \
	FRAME(GRANT, 12, "grant", FROM_P | FROM_G, FRAME_NO_BODY, 0, "req:i attempt:i")            \
	FRAME(DATA, 13, "data", FROM_A | FROM_P | FROM_G, 0, 64 << 10, "req:i")                    \
	FRAME(END, 14, "end", FROM_A | FROM_P | FROM_G, 0, 64 << 10,                               \
	      "req:i outcome:s? class:s? status:i? used:i? limit:i? until:i? bytes:i? ttft_ms:i?") \
	FRAME(AGAIN, 15, "again", FROM_P | FROM_G, FRAME_NO_BODY, 0,                               \
	      "req:i attempt:i reason:s until:i? status:i?")                                       \
	FRAME(CANCEL, 16, "cancel", FROM_A | FROM_P, FRAME_NO_BODY | FRAME_URGENT, 0, "req:i")     \
	FRAME(ABORT, 17, "abort", FROM_P, FRAME_NO_BODY | FRAME_URGENT, 0, "req:i")                \
	FRAME(CREDIT, 18, "credit", FROM_A | FROM_P | FROM_G, FRAME_NO_BODY, 0, "req:i bytes:i")   \
	FRAME(USAGE, 19, "usage", FROM_A, FRAME_NO_BODY, 0,                                        \
	      "req:i input:i cache_read:i cache_write:i output:i estimated:b? cache_write_1h:i?")  \
	/* What an agent tells, and effects that it asks for; key is (generation, call id). */     \
	FRAME(EVENT, 30, "event", FROM_A, FRAME_PARTS, 1 << 20, "name:s")                          \
	FRAME(REPORT, 31, "report", FROM_A, FRAME_PARTS, 1 << 20, "generation:i call:s")           \
	FRAME(CHECKPOINT, 32, "checkpoint", FROM_A, FRAME_PARTS, 64 << 10, "generation:i call:s")  \
	FRAME(ACK, 33, "ack", FROM_P, FRAME_PARTS, 1 << 20, "call:s ok:b")                         \
	FRAME(RESULT, 34, "result", FROM_A, FRAME_PARTS, 1 << 20, "status:s reason:s?")            \
	FRAME(HOOK, 35, "hook", FROM_A, FRAME_PARTS, 8 << 20,                                      \
	      "generation:i call:s event:s subject:s")                                             \
	FRAME(RESET, 36, "reset", FROM_A, FRAME_PARTS, 1 << 20, "generation:i call:s")             \
	/* A5, A7: agents that an agent starts, and what it hears of them. */                      \
	FRAME(SPAWN, 37, "spawn", FROM_A, FRAME_PARTS, 1 << 20, "generation:i call:s")             \
	FRAME(MESSAGE, 38, "message", FROM_A, FRAME_PARTS, 256 << 10,                              \
	      "generation:i call:s action:s to:s?")                                                \
	FRAME(CHILD, 39, "child", FROM_P, FRAME_PARTS, 4 << 20, "agent:s state:s")                 \
	/* Worktree service: one operation and its answer, see docs/frames.md. */                  \
	FRAME(GIT, 50, "git", FROM_P, FRAME_PARTS, 8 << 20, "id:i op:s")                           \
	FRAME(GIT_DONE, 51, "git_done", FROM_W, FRAME_PARTS, 32 << 20, "id:i ok:b code:s?")        \
	/* Gateway news for the journal. */                                                        \
	FRAME(NOTE, 60, "note", FROM_G, FRAME_PARTS, 64 << 10, "name:s")

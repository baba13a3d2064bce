"""A scripted Anthropic server for benchmarks: answers at once, and notes when requests arrive and answers end.

One thread a connection; times are time.monotonic_ns. The script is a function from the number of assistant
messages so far (turn) to a list of tool calls; no request is parsed beyond counting.
"""
import json
import socket
import threading
import time

REQUEST_MAX = 4 << 20  # bytes of one request with its head


def events(calls, request_id):
    def event(name, data):
        return f"event: {name}\ndata: {json.dumps(data)}\n\n"

    usage = {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 100, "output_tokens": 1}
    out = [event("message_start", {"type": "message_start", "message": {
        "id": f"msg_{request_id}", "type": "message", "role": "assistant", "model": "bench", "content": [],
        "stop_reason": None, "usage": usage}})]
    for index, (name, arguments) in enumerate(calls):
        out.append(event("content_block_start", {"type": "content_block_start", "index": index, "content_block": {
            "type": "tool_use", "id": f"toolu_{request_id}_{index}", "name": name, "input": {}}}))
        out.append(event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": {
            "type": "input_json_delta", "partial_json": json.dumps(arguments)}}))
        out.append(event("content_block_stop", {"type": "content_block_stop", "index": index}))
    out.append(event("message_delta", {"type": "message_delta", "delta": {"stop_reason": "tool_use"},
                                       "usage": {"output_tokens": 20}}))
    out.append(event("message_stop", {"type": "message_stop"}))
    body = "".join(out).encode()
    head = (f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n").encode()
    return head + body


class ModelServer:
    def __init__(self, script):
        self.script = script
        self.arrivals, self.ends = [], []
        self.hold = threading.Event()
        self.hold.set()
        self.count = 0
        self.lock = threading.Lock()
        self.hold_turn = 0  # requests of this turn and later wait while hold is not set
        self.held = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def read_request(self, connection, buffer, have):
        """Reads one request into buffer, of which `have` bytes are filled. Returns ((arrival, turn), bytes after it).

        The buffer is the connection's and is written again and again: a fresh one would cost a page fault for
        each 4 KiB that arrives, which is the server's time and not baton's.
        """
        view = memoryview(buffer)
        while (end := buffer.find(b"\r\n\r\n", 0, have)) < 0:
            n = connection.recv_into(view[have:])
            if not n:
                return None, 0
            have += n
        length = 0
        for line in bytes(buffer[:end]).split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            if name.lower() == b"expect":
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        start = end + 4
        while have < start + length:
            n = connection.recv_into(view[have:])
            if not n:
                return None, 0
            have += n
        arrived = time.monotonic_ns()
        turn = buffer.count(b'"role":"assistant"', start, start + length)
        rest = have - start - length
        view[:rest] = view[start + length:have]
        return (arrived, turn), rest

    def serve(self, connection):
        buffer, rest = bytearray(REQUEST_MAX), 0
        while True:
            try:
                request, rest = self.read_request(connection, buffer, rest)
            except OSError:
                return
            if request is None:
                return
            arrived, turn = request
            with self.lock:
                self.count += 1
                number = self.count
                self.arrivals.append(arrived)
            if turn >= self.hold_turn:
                with self.lock:
                    self.held += 1
                self.hold.wait()
            answer = events(self.script(turn), number)
            try:
                connection.sendall(answer)
            except OSError:
                return
            with self.lock:
                self.ends.append(time.monotonic_ns())

    def close(self):
        self.listener.close()

"""A small TCP proxy before PostgreSQL that breaks one connection at one message and no other."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct

__all__ = ["Proxy"]

_PIECE = 1 << 16


class Proxy:
    """A process that passes bytes on, and cuts the connection that carries the n-th message of a client.

    `lose_answer` says when: before the message is passed on, so that the server never sees it, or after its
    answer came back, so that it was carried out and nobody knows.
    """

    def __init__(self, upstream: str, *, cut_at: int, lose_answer: bool):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._upstream = upstream
        self._left = cut_at
        self._lose_answer = lose_answer
        read, write = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            os.close(read)
            try:
                self._serve(write)
            finally:
                os._exit(0)
        os.close(write)
        self._listener.close()
        self._told = read

    def close(self) -> bool:
        """End the proxy; True when it has cut a connection."""
        os.kill(self._process, signal.SIGKILL)  # a handled signal can be missed by `select`
        os.waitpid(self._process, 0)
        cut = os.read(self._told, 1) == b"x"
        os.close(self._told)
        return cut

    def _serve(self, tell: int) -> None:
        other: dict[socket.socket, socket.socket] = {}
        clients: set[socket.socket] = set()
        doomed: socket.socket | None = None
        while True:
            ready, _, _ = select.select([self._listener, *other], [], [])
            for each in ready:
                if each is self._listener:
                    client, _ = self._listener.accept()
                    server = socket.socket(socket.AF_UNIX)
                    server.connect(self._upstream)
                    other[client], other[server] = server, client
                    clients.add(client)
                    continue
                if each not in other:
                    continue
                piece = self._read(each)
                if each in clients and piece:
                    self._left -= 1
                    if self._left == 0:
                        os.write(tell, b"x")
                        if not self._lose_answer:
                            piece = b""
                        doomed = each
                elif each not in clients and other[each] is doomed:
                    piece = b""
                if piece:
                    other[each].sendall(piece)
                else:
                    self._drop(each, other)

    @staticmethod
    def _read(each: socket.socket) -> bytes:
        try:
            return each.recv(_PIECE)
        except ConnectionError:
            return b""

    @staticmethod
    def _drop(each: socket.socket, other: dict[socket.socket, socket.socket]) -> None:
        beyond = other.pop(each)
        other.pop(beyond, None)
        for end in (each, beyond):
            if end.family == socket.AF_INET:  # a reset, not a polite end
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.close()

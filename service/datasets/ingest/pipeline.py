"""An upload in motion: encoded by a thread of its own while the body still arrives and chunks are stored."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

from service.datasets.ingest.chunks import ChunkFile, StoredChunk
from service.datasets.ingest.encode import Encoded, Upload, encode_upload

__all__ = ["Pipeline"]


class Pipeline:
    """Reads and encodes an upload in the background.

    The thread is its own and not one of the pool that answers requests: it waits for the body, and a few
    slow uploads must not leave everybody else without a thread.
    """

    def __init__(self, upload: Upload):
        self._upload = upload
        self._chunks: ChunkFile = upload.chunk_file()
        self._encoded: Encoded | None = None
        self._fault: BaseException | None = None
        self._thread = Thread(target=self._run, name="encode-upload", daemon=True)

    def start(self) -> Pipeline:
        """Begin to read."""
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            self._encoded = encode_upload(self._upload, self._chunks)
        except BaseException as fault:
            self._fault = fault
            self._chunks.fail(fault)

    def chunks(self) -> Iterator[StoredChunk]:
        """The chunks in order, as they become ready; BegunAgain when those handed out so far are void."""
        return self._chunks.chunks()

    def result(self) -> Encoded:
        """Wait for the end; raises what was wrong with the upload."""
        self._thread.join()
        if self._encoded is None:
            assert self._fault is not None
            raise self._fault
        return self._encoded

    def close(self) -> None:
        """Give up what is not done, and let the files go."""
        self._upload.spool.abandon()
        self._thread.join()
        self._chunks.close()
        self._upload.spool.close()

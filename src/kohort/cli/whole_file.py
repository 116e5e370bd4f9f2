"""A file that is written whole or not at all, whatever interrupts it."""

import contextlib
import errno
import os
import secrets
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write beside the file and put it into its place at the end; what is no plain file is written as it is."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8", newline="")
        return
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    partial = target.with_name(f".kohort-{secrets.token_hex(8)}")

    def create(name: str, flags: int) -> int:
        return os.open(name, flags, 0o666 if mode is None else 0o600)

    with contextlib.ExitStack() as in_the_end:
        in_the_end.callback(partial.unlink, missing_ok=True)
        with open(partial, "x", encoding="utf-8", newline="", opener=create) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(partial, mode)
        os.replace(partial, target)

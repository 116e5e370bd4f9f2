"""A file that is written whole or not at all, whatever interrupts it."""

import errno
import os
import tempfile
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
    descriptor, partial = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(partial, mode if mode is not None else 0o666 & ~_umask())
        os.replace(partial, target)
    except BaseException:
        os.unlink(partial)
        raise


def _umask() -> int:
    """It can be told only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""How many files a process may have open: a broker has some for each partition and one for each client.

Systems start processes with a low limit that they may raise themselves up to a high one; servers do, and so do we.
"""

import logging

logger = logging.getLogger(__name__)

_WITHOUT_LIMIT = 1_048_576
"""What to ask for where there is no highest number: Linux does not give more by default."""


def raise_open_files_limit() -> None:
    """As far as this process may. Where that cannot be done it stays as it is, and the log says so."""
    try:
        import resource
    except ImportError:  # there is none for Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WITHOUT_LIMIT if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError) as error:
        logger.warning("at most %d files can be open: the limit could not be raised to %d: %s", soft, wanted, error)
    else:
        logger.info("up to %d files can be open", wanted)

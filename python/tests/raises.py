"""`pytest.raises`, also without pytest."""

import contextlib
import re


@contextlib.contextmanager
def raises(kind, match=""):
    try:
        yield
    except kind as error:
        assert re.search(match, str(error)), f"{error!r} does not match {match!r}"
    else:
        raise AssertionError(f"no {kind.__name__}")

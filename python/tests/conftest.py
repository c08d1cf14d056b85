import pytest
from support import libraries


def pytest_generate_tests(metafunc):
    if "xp" in metafunc.fixturenames:
        metafunc.parametrize("xp", libraries(), ids=lambda xp: xp.name)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"libraries: {', '.join(xp.name for xp in libraries())}")


@pytest.fixture(autouse=True)
def on_a_side_stream(request):
    """Tests of arrays on a GPU run on a stream that is not the default one."""
    xp = request.getfixturevalue("xp") if "xp" in request.fixturenames else None
    if xp is None:
        yield
    else:
        with xp.stream():
            yield

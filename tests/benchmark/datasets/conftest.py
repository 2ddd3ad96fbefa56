import pytest

from tests.benchmark.datasets.local_server import serve


@pytest.fixture
def site(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):  # 127.0.0.1 is here
        monkeypatch.delenv(name, raising=False)
    with serve() as running:
        yield running

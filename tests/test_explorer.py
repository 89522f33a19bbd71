"""The explorer's page, its server and its command."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ipe.cli.program import main
from ipe.errors import InputError
from ipe.explorer import ExplorerServer, explorer_page, write_explorer
from ipe.explorer.models import EXAMPLES, examples, page_model
from ipe.explorer.page import ENTRY, WEB
from ipe.mdp import FiniteMDP
from ipe.mdp_files import save_mdp
from ipe.pages.bundle import bundle
from ipe.zoo import chain, make, river_swim, switch_stay


class Elements(HTMLParser):
    """Every element's name and attributes, and the text of styles and scripts."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in ("style", "script"):
            self.texts.append((*self.found[-1], data))


def data_of(page: str) -> Any:
    return json.loads(next(text for tag, attrs, text in Elements(page).texts if attrs.get("id") == "data"))


def test_the_page_has_a_strict_policy_that_fits_it() -> None:
    elements = Elements(explorer_page())
    policy = next(attrs["content"] for tag, attrs in elements.found if "http-equiv" in attrs) or ""
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        text = next(text for tag, attrs, text in elements.texts if tag == kind and not attrs.get("type"))
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_the_page_names_nothing_outside_itself() -> None:
    page = explorer_page()
    for tag, attributes in Elements(page).found:
        assert not attributes.keys() & {"src", "srcset", "style", "onclick", "action"}, tag
        assert (attributes.get("href") or "data:,") == "data:,"
    assert set(re.findall(r"https?://[^\"' )]*", page)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "@import" not in page
    assert "fetch(" not in page


def test_the_same_mdp_gives_the_same_bytes() -> None:
    assert explorer_page(switch_stay(), "switch-stay") == explorer_page(switch_stay(), "switch-stay") == explorer_page()


def test_the_examples_are_those_of_the_zoo() -> None:
    models = data_of(explorer_page())["models"]
    assert [model["name"] for model in models] == list(EXAMPLES)
    assert (models[0]["title"], models[0]["example"]) == ("Switch-Stay", True)
    assert models[4]["actions"][1][2]["reward"] == float(make("dadashi-3").rewards[1, 2])
    assert models == json.loads(json.dumps(examples()))


def test_a_given_mdp_comes_first() -> None:
    models = data_of(explorer_page(make("dadashi-2"), "dadashi-2"))["models"]
    assert [model["name"] for model in models[:2]] == ["dadashi-2", "switch-stay"]
    assert len(models) == len(EXAMPLES)
    impostor = data_of(explorer_page(switch_stay(gamma=0.5), "switch-stay"))["models"]
    assert [(model["name"], model["example"]) for model in impostor[:2]] == [
        ("switch-stay", False),
        ("switch-stay", True),
    ]
    assert len(impostor) == len(EXAMPLES) + 1


def test_names_cannot_leave_the_data() -> None:
    mdp = FiniteMDP(
        np.full((2, 1, 2), 0.5),
        [[0.0], [1.0]],
        0.5,
        state_names=("</script><script>alert(1)", "<!--"),
        action_names=("ü",),
    )
    page = explorer_page(mdp, "</script>")
    scripts = [attrs for tag, attrs in Elements(page).found if tag == "script"]
    assert len(scripts) == 2
    assert data_of(page)["models"][0]["states"] == ["</script><script>alert(1)", "<!--"]
    assert data_of(page)["models"][0]["actions"][0][0]["name"] == "ü"


def test_terminal_states_masks_and_rewards_of_the_next_state() -> None:
    model = page_model(chain(n=3, slip=0.1), "chain")
    assert model["states"] == ["s0", "s1"]
    assert model["start"] == [1.0, 0.0]
    left, right = model["actions"][1]
    assert left == {"name": "left", "reward": pytest.approx(0.1), "next": [0.9, 0.0, 0.1], "rewards": [0.0, 0.1, 1.0]}
    assert right["next"] == [0.1, 0.0, 0.9]
    assert model["actions"][0][0]["rewards"] is None
    masked = FiniteMDP(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), 0.9, allowed=[[True, True], [False, True]])
    assert [len(rows) for rows in page_model(masked, "x")["actions"]] == [2, 1]
    assert page_model(masked, "x")["actions"][1][0]["name"] == "a1"


@pytest.mark.parametrize(
    ("mdp", "sentence"),
    [
        (river_swim(3), "the value polytope is for MDPs with exactly two states that are not terminal; this one has 3"),
        (FiniteMDP(np.full((2, 40, 2), 0.5), np.zeros((2, 40)), 0.9), "at most 32 actions per state; this MDP has 40"),
        (
            FiniteMDP(np.full((2, 1, 2), 0.5), [[0.0], [1e10]], 0.9),
            r"rewards up to 1e\+09; \(s1, a0\) has one of 1e\+10",
        ),
    ],
)
def test_an_mdp_that_cannot_be_shown_is_refused(mdp: FiniteMDP, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        explorer_page(mdp)


def test_two_ends_with_different_rewards_are_refused() -> None:
    p = np.zeros((4, 1, 4))
    p[0, 0, 2:], p[1, 0, 0], p[2, 0, 2], p[3, 0, 3] = 0.5, 1.0, 1.0, 1.0
    r = np.zeros((4, 1, 4))
    r[0, 0, 3] = 1.0
    with pytest.raises(InputError, match=r"\(s0, a0\) ends with several different rewards"):
        page_model(FiniteMDP(p, r, 0.9, terminal=[2, 3]), "x")
    r[0, 0, 2] = 1.0
    assert page_model(FiniteMDP(p, r, 0.9, terminal=[2, 3]), "x")["actions"][0][0]["next"] == [0.0, 0.0, 1.0]


def test_every_module_is_in_the_bundle_once() -> None:
    script = bundle(ENTRY)
    for folder in ("math", "page"):
        for file in (WEB / folder).glob("*.js"):
            expected = 0 if file.name == "index.js" else 1
            assert script.count(f"const $explorer_web_{folder}_{file.stem} = ") == expected, file.name


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: the explorer's JavaScript cannot run")
def test_the_bundle_is_a_script(tmp_path: Path) -> None:
    script = tmp_path / "page.cjs"
    script.write_text(bundle(ENTRY), encoding="utf-8")
    assert subprocess.run([shutil.which("node") or "node", "--check", script], check=False).returncode == 0


def test_modules_in_a_circle_or_of_another_form_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipe.pages.bundle.ROOT", tmp_path)
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\nexport const a = 1;\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\nexport const b = 1;\n')
    with pytest.raises(RuntimeError, match=r"circle: a\.js -> b\.js -> a\.js"):
        bundle("a.js")
    (tmp_path / "c.js").write_text("export default 1;\n")
    with pytest.raises(RuntimeError, match=r"c\.js imports or exports in a form"):
        bundle("c.js")


def test_writing_a_page(tmp_path: Path) -> None:
    write_explorer(tmp_path / "explorer.html")
    assert (tmp_path / "explorer.html").read_text(encoding="utf-8") == explorer_page()
    with pytest.raises(InputError, match=r"page\.txt: the suffix of a page must be \.html; found \.txt"):
        write_explorer(tmp_path / "page.txt")
    assert [file.name for file in tmp_path.iterdir()] == ["explorer.html"]


@pytest.fixture
def server() -> Iterator[ExplorerServer]:
    with ExplorerServer("<!doctype html><p>ü", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server: ExplorerServer, method: str, path: str, host: str | None = None) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request(method, path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_the_server_gives_the_page_and_nothing_else(server: ExplorerServer) -> None:
    status, headers, body = ask(server, "GET", "/?x=1")
    assert (status, body.decode()) == (200, "<!doctype html><p>ü")
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Cache-Control"] == "no-store"
    assert "Python" not in headers["Server"]
    assert ask(server, "HEAD", "/")[::2] == (200, b"")
    assert ask(server, "GET", "/etc/passwd")[0] == 404
    assert ask(server, "GET", "/../pyproject.toml")[0] == 404
    assert ask(server, "POST", "/")[0] == 501


def test_the_server_answers_to_its_own_name_only(server: ExplorerServer) -> None:
    assert ask(server, "GET", "/", host=f"localhost:{server.port}")[0] == 200
    assert ask(server, "GET", "/", host=f"elsewhere.example:{server.port}")[0] == 421
    assert server.server_address[0] == "127.0.0.1"


def test_a_port_in_use_is_refused(server: ExplorerServer) -> None:
    with pytest.raises(InputError, match=rf"cannot listen on 127\.0\.0\.1, port {server.port}: "):
        ExplorerServer("", server.port)
    with pytest.raises(InputError, match="port must be a whole number from 0 to 65535, found 70000"):
        ExplorerServer("", 70000)


def test_the_command_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_mdp(switch_stay(gamma=0.8), tmp_path / "mine.json")
    out = tmp_path / "explorer.html"
    assert main(["explore", str(tmp_path / "mine.json"), "--out", str(out)]) == 0
    assert f"next: open {out} in a browser; it needs no server" in capsys.readouterr().out
    page = out.read_text(encoding="utf-8")
    assert data_of(page)["models"][0]["title"] == "mine.json"
    assert str(tmp_path) not in page
    assert main(["explore", "--out", str(out)]) == 2
    assert main(["explore", "--out", str(out), "--overwrite"]) == 0
    assert out.read_text(encoding="utf-8") == explorer_page()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["river-swim:n=3", "--out", "x.html"], "exactly two states that are not terminal; this one has 3"),
        (["river-swim:n=3"], "exactly two states that are not terminal; this one has 3"),
        (["nothing"], "the zoo has no such MDP"),
        (["--out", "x.pdf"], "x.pdf: the suffix of a page must be .html; found .pdf"),
        (["--out", "x.html", "--port", "80"], "--port has no effect with --out"),
        (["--out", "x.html", "--no-browser"], "--no-browser has no effect with --out"),
        (["--overwrite"], "--overwrite has no effect without --out"),
        (["--port", "eighty"], "--port must be a whole number, found 'eighty'"),
        (["--port", "70000", "--no-browser"], "port must be a whole number from 0 to 65535, found 70000"),
    ],
)
def test_wrong_arguments_get_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda url: pytest.fail(f"opened {url}"))
    assert main(["explore", *words]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_command_serves_until_ctrl_c() -> None:
    command = [sys.executable, "-m", "ipe", "explore", "dadashi-3", "--no-browser"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"at http://127\.0\.0\.1:(\d+)/ \(Ctrl-C ends it\)", line)
        assert found, line + (process.stderr.read() if process.stderr else "")
        with socket.create_connection(
            ("127.0.0.1", int(found[1])), timeout=10
        ):  # left open, it must not keep the program
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=10)
            connection.request("GET", "/")
            page = connection.getresponse().read().decode()
            connection.close()
            assert data_of(page)["models"][0]["name"] == "dadashi-3"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err) == (0, "")
    assert out.strip() == "ended"


def test_the_servers_name_without_a_port_is_that_of_port_80(
    server: ExplorerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask(server, "GET", "/", host="localhost")[0] == 421
    monkeypatch.setattr("ipe.explorer.serving.HTTP_PORT", server.port)
    assert ask(server, "GET", "/", host="localhost")[0] == 200
    assert ask(server, "GET", "/", host="elsewhere.example")[0] == 421

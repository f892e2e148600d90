"""What an engine's own parser makes of argument lists: arguments.py ENGINE PACKAGES < LISTS > ANSWERS

LISTS is a JSON list of lists of words; ANSWERS has one JSON object each: what was understood, or
{"refused": why}. PACKAGES is a folder with the engine's Python sources, without what they need: torch
and its like are gigabytes, and no parser uses them. They are replaced by stand-ins that have every name
and do nothing. Engines are imported by the files that they parse with in the release that is pinned in
versions.toml; another release may need another stand-in.
"""

import abc
import argparse
import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import os
import sys
import types


class Nothing(abc.ABCMeta):
    """A class that stands for whatever is asked of it: a type, a decorator, a number, a list."""

    def __getattr__(cls, name):
        if name == "__get_pydantic_core_schema__":
            from pydantic_core import core_schema

            return lambda *_: core_schema.any_schema()
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(f"{cls.__module__}.{name}")

    def __call__(cls, *args, **named):
        plain = len(args) == 1 and not named and callable(args[0])
        return args[0] if plain and not isinstance(args[0], Nothing) else cls

    def itself(cls, *_):
        return cls

    def no(cls, *_):
        return False

    def zero(cls, *_):
        return 0

    def other(cls, other):
        return other

    __or__ = __ror__ = __getitem__ = __enter__ = itself
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = __exit__ = no
    __mul__ = __rmul__ = __len__ = __int__ = zero
    __add__ = __radd__ = other
    __hash__ = type.__hash__

    def __eq__(cls, other):
        return cls is other

    def __iter__(cls):
        return iter(())


def stand_in(name):
    return Nothing(name.rsplit(".", 1)[-1], (), {"__module__": name})


class Module(types.ModuleType):
    __path__ = []
    __version__ = "0.0.0"

    def __getattr__(self, name):
        # Accelerators that engines look for by asking torch; there are none.
        if name.startswith("__") or name in ("hpu", "musa", "npu", "xpu"):
            raise AttributeError(name)
        found = sys.modules.get(f"{self.__name__}.{name}") or stand_in(f"{self.__name__}.{name}")
        setattr(self, name, found)
        return found


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what is not installed, and `instead` of the engine's own modules of these names."""

    # By which engines tell accelerators apart.
    ABSENT = {"habana_frameworks", "libtpu", "mlx", "torch_musa", "torch_npu", "tpu_inference"}

    def __init__(self, engine, instead):
        self.engine, self.instead = engine, tuple(instead)

    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        replaced = any(name == one or name.startswith(one + ".") for one in self.instead)
        known = top in self.ABSENT or top in sys.stdlib_module_names or top == self.engine
        if not replaced and (known or importlib.machinery.PathFinder.find_spec(top)):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        pass


def vllm():
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    whole = FlexibleArgumentParser()
    make_arg_parser(whole.add_subparsers(dest="command").add_parser("serve"))

    def read(words):
        found = whole.parse_args(["serve", *words])
        return {
            "model": found.model_tag,
            "names": found.served_model_name,
            "port": found.port,
            "gpus": found.tensor_parallel_size,
            "drainSeconds": found.shutdown_timeout,
            "stepTokens": found.max_num_batched_tokens,
        }

    return read


def sglang():
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)

    def read(words):
        found = parser.parse_args(words)
        return {
            "model": found.model_path,
            "names": [found.served_model_name],
            "host": found.host,
            "port": found.port,
            "gpus": found.tp_size,
            "metrics": found.enable_metrics,
            "stepTokens": found.chunked_prefill_size,
        }

    return read


# The parser, which of the engine's own modules are not needed, and whether its package may run.
ENGINES = {
    "vllm": (vllm, ["vllm.v1.executor"], True),
    "sglang": (sglang, ["sglang.kernels", "sglang.srt.distributed"], False),
}


def main():
    engine, packages = sys.argv[1:]
    make, instead, runs = ENGINES[engine]
    sys.path.insert(0, packages)
    if not runs:
        package = types.ModuleType(engine)
        package.__path__ = [os.path.join(packages, engine)]
        sys.modules[engine] = package
    os.environ["SGLANG_USE_CPU_ENGINE"] = "1"
    finder = StandIns(engine, instead)
    sys.meta_path.insert(0, Before(finder))
    sys.meta_path.append(finder)
    answers = sys.stdout
    # Engines greet and warn.
    with contextlib.redirect_stdout(sys.stderr):
        read = make()
        for words in json.load(sys.stdin):
            said = io.StringIO()
            try:
                with contextlib.redirect_stderr(said):
                    answer = read(words)
            except (SystemExit, ValueError) as why:
                answer = {"refused": said.getvalue().strip().split("\n")[-1] or str(why)}
            print(json.dumps(answer), file=answers)


class Before(importlib.abc.MetaPathFinder):
    """The same, asked before the engine's own folder is: for what stands instead of its modules."""

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        instead = self.finder.instead
        if any(name == one or name.startswith(one + ".") for one in instead):
            return self.finder.find_spec(name)
        return None


main()

"""Lists what an image with this Python needs, a line each: the file here, a tab, its place there.

    python python_files.py FOLDER

The image has no packages: those that are installed lie on a volume, and only the libraries of the system that they load
are listed. Modules are compiled into FOLDER without their time, which an image does not keep; nothing could be compiled
when they are loaded, because who runs there may not write.
"""

import pathlib
import py_compile
import subprocess
import sys
import sysconfig

LEFT_OUT = {"__pycache__", "ensurepip", "idlelib", "lib2to3", "site-packages", "test", "tests", "tkinter", "turtledemo"}


def modules(folder):
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if path.name not in LEFT_OUT and not path.name.startswith("config-"):
                yield from modules(path)
        elif path.suffix in (".py", ".so") and not path.name.startswith("_tkinter"):
            yield path


def compiled(source, folder, standard):
    beside = source.relative_to(standard).parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(source), str(folder / beside), str(source), doraise=True, invalidation_mode=unchecked)
    return folder / beside, standard / beside


def libraries(program):
    """Files that `ldd` names: `libc.so.6 => /lib/libc.so.6 (0x...)`, and the loader by itself."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
    for line in listed.splitlines():
        yield from (word for word in line.split() if word.startswith("/"))


def main():
    folder = pathlib.Path(sys.argv[1])
    standard, packages = (pathlib.Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
    interpreter = pathlib.Path(sys.executable).resolve()
    files = {}
    for name in (interpreter.name, "python3"):
        files[str(pathlib.Path(sys.base_prefix, "bin", name))] = interpreter
    programs = [interpreter, *packages.rglob("*.so")]
    for module in modules(standard):
        files[str(module)] = module
        if module.suffix == ".so":
            programs.append(module)
        else:
            made, place = compiled(module, folder, standard)
            files[str(place)] = made
    for program in programs:
        for library in libraries(program):
            if not pathlib.Path(library).is_relative_to(packages):
                files[library] = library
    for place, file in sorted(files.items()):
        print(file, place, sep="\t")


if __name__ == "__main__":
    main()

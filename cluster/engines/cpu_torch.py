"""Makes a CPU-only torch out of the CUDA build that registries serve, in place.

    python cpu_torch.py SITE_PACKAGES          needs gcc and readelf

torch's CPU libraries are linked against its CUDA libraries, which are gigabytes. They are removed,
and one small library takes their place: it has every symbol that the CPU half names, and each
answers that there is no device. Tried with torch 2.13.0. The list of symbols is read from the
files; the cases in `body_of` were found by running it and may change with the version.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

CPU_HALF = [
    "libc10.so",
    "libshm.so",
    "libtorch.so",
    "libtorch_cpu.so",
    "libtorch_global_deps.so",
    "libtorch_python.so",
]
CUDA_HALF = [
    "libc10_cuda.so",
    "libcaffe2_nvrtc.so",
    "libtorch_cuda.so",
    "libtorch_cuda_linalg.so",
    "libtorch_nvshmem.so",
]
STUB = "libtorch_cuda.so"

# What every stub shares: zeroed memory to point at, and a class whose methods do nothing.
PREAMBLE = """
extern void *_ZTVN10__cxxabiv117__class_type_infoE[];
static char nothing[4096];
static void do_nothing(void) {}
static struct { void *table; const char *name; void *end; } any_class = {
  &_ZTVN10__cxxabiv117__class_type_infoE[2], "4stub", 0 };
static void *methods[18] = { 0, &any_class, %s };
""" % ", ".join(["(void *)do_nothing"] * 16)


class Symbol:
    """One line of a library's dynamic symbol table."""

    def __init__(self, fields):
        _, _, size, self.kind, self.binding, _, section, name = fields[:8]
        self.size = int(size, 0)
        self.defined = section != "UND"
        self.name, _, version = name.partition("@")
        self.version = version.lstrip("@")


def read(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols_of(library):
    for line in read("readelf", "--wide", "--dyn-syms", str(library)).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[0].rstrip(":").isdigit():
            yield Symbol(fields)


def libraries_needed_by(library):
    listed = read("readelf", "--wide", "--dynamic", str(library))
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", listed))


def is_for_a_device(soname):
    return re.match(r"lib(cu|nv|nccl|c10_cuda|torch_cuda)", soname) is not None


def path_of(folder, soname):
    beside = folder / soname
    return beside if beside.exists() else read("gcc", f"-print-file-name={soname}").strip()


def missing_symbols(folder):
    """What the CPU half names and nothing that stays defines, and the libraries to stand in for."""
    wanted, defined, needed = {}, set(), set()
    for name in CPU_HALF:
        needed |= libraries_needed_by(folder / name)
        for symbol in symbols_of(folder / name):
            if symbol.defined:
                defined.add(symbol.name)
            elif symbol.binding != "WEAK":
                wanted.setdefault(symbol.name, symbol)
    for soname in needed - set(CPU_HALF):
        if not is_for_a_device(soname):
            found = symbols_of(path_of(folder, soname))
            defined |= {symbol.name for symbol in found if symbol.defined}
    ours = [s for s in wanted.values() if s.name not in defined and not is_pythons(s.name)]
    return ours, {soname for soname in needed if is_for_a_device(soname)}


def is_pythons(name):
    # The interpreter itself has these.
    return name.startswith(("Py", "_Py"))


def shape_in_cuda_half(folder):
    """Kind and size of each symbol as the real library has it: a use does not tell."""
    shapes = {}
    for name in CUDA_HALF:
        if (folder / name).exists():
            found = symbols_of(folder / name)
            shapes.update({s.name: (s.kind, s.size) for s in found if s.defined})
    return shapes


def body_of(symbol, shapes):
    """The symbol in C; a mangled C++ name is a plain name there."""
    name = symbol.name
    kind, size = shapes.get(name, (symbol.kind, 0))
    if name.startswith("_ZTI"):
        # The Python binding asks a class for its name, so this must be a real type description.
        return (
            f"struct {{ void *table; const char *name; void *end; }} {name} = "
            f'{{ &_ZTVN10__cxxabiv117__class_type_infoE[2], "{name[4:]}", 0 }};'
        )
    if name.startswith("_ZTV") or kind in ("OBJECT", "TLS"):
        return f"char {name}[{max(size, 256)}] __attribute__((aligned(16)));"
    if "ProcessGroupNCCL7OptionsC" in name:
        # Made as the default value of an argument while torch is imported.
        return f"void *{name}(void **self) {{ *self = &methods[2]; return self; }}"
    if "device_count" in name:
        return f"long {name}(void) {{ return 0; }}"
    if re.match(r"cuda[A-Z]|cudnn|cupti", name):
        # cudaErrorNoDevice
        return f"int {name}(void) {{ return 100; }}"
    return f"void *{name}(void) {{ return nothing; }}"


def version_script(symbols):
    versions = sorted({symbol.version for symbol in symbols if symbol.version})
    blocks = []
    for version in versions:
        names = " ".join(f"{s.name};" for s in symbols if s.version == version)
        blocks.append(f"{version} {{ global: {names} }};\n")
    return "".join(blocks)


def main():
    folder = pathlib.Path(sys.argv[1]) / "torch" / "lib"
    symbols, sonames = missing_symbols(folder)
    shapes = shape_in_cuda_half(folder)
    with tempfile.TemporaryDirectory() as scratch:
        source, script = pathlib.Path(scratch, "stub.c"), pathlib.Path(scratch, "stub.map")
        bodies = (body_of(symbol, shapes) for symbol in symbols)
        source.write_text(PREAMBLE + "\n".join(bodies) + "\n")
        script.write_text(version_script(symbols))
        built = pathlib.Path(scratch, STUB)
        options = ["-shared", "-fPIC", "-fno-builtin", "-w", "-O1", f"-Wl,-soname,{STUB}"]
        options.append(f"-Wl,--version-script={script}")
        read("gcc", *options, "-o", str(built), str(source), "-lstdc++")
        for name in CUDA_HALF:
            (folder / name).unlink(missing_ok=True)
        (folder / STUB).write_bytes(built.read_bytes())
    for soname in sonames - {STUB}:
        (folder / soname).unlink(missing_ok=True)
        (folder / soname).symlink_to(STUB)
    print(f"{len(symbols)} symbols stand in for {len(sonames)} libraries")


if __name__ == "__main__":
    main()

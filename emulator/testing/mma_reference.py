#!/usr/bin/env python3
"""Prints products of small matrices as mmasim (on PyPI), a model of tensor cores, computes them.

One line a product: architecture, form, then the bit patterns of A (by rows), B (by columns), C and
D (by rows), in hexadecimal without leading zeros, each matrix after a word that names it.
Usage: mma_reference.py [--seed N] [--count N]. Exits with 77 where mmasim cannot be imported: neither
by this interpreter, nor from the folder that scripts/setup fills, where torch_stand_in.py takes
torch's place.
"""

import argparse
import importlib.util
import os
import random
import sys
import warnings

SKIPPED = 77
if os.getuid() == 0:
    CACHE = "/var/cache"
else:
    CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
PACKAGES = os.path.join(CACHE, "assay", "mmasim")
ARCHITECTURES = {"Turing": 75, "Ampere": 80, "Ada Lovelace": 89, "Hopper": 90}
# Exponent and fraction bits of a pattern.
FORMATS = {
    "f16": (5, 10),
    "bf16": (8, 7),
    "tf32": (8, 23),
    "f32": (8, 23),
    "f64": (11, 52),
    "e4m3": (4, 3),
    "e5m2": (5, 2),
}


def draw(generator, name, special):
    """A pattern: near one, of any exponent, zero, subnormal, or with `special` not a number."""
    exponent_bits, fraction_bits = FORMATS[name]
    any_bits = generator.getrandbits(1 + exponent_bits + fraction_bits)
    exponent_mask = ((1 << exponent_bits) - 1) << fraction_bits
    bias = (1 << (exponent_bits - 1)) - 1
    kind = generator.randrange(8)
    if kind == 0:
        return 0
    if kind == 1:
        return any_bits & ~exponent_mask
    if kind == 2 and special and generator.randrange(4) == 0:
        return any_bits | exponent_mask
    if kind <= 3:
        if any_bits & exponent_mask == exponent_mask:
            any_bits ^= 1 << fraction_bits
        return any_bits
    exponent = bias + generator.randrange(-3, 4)
    return (any_bits & ~exponent_mask) | (exponent << fraction_bits)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4, help="products of each form")
    arguments = parser.parse_args()
    # mmasim builds a small library on first use, with tools that pip put beside the interpreter.
    beside = os.path.dirname(os.path.abspath(sys.executable))
    os.environ["PATH"] = beside + os.pathsep + os.environ.get("PATH", "")
    warnings.simplefilter("ignore")
    try:
        if importlib.util.find_spec("torch") is None:
            sys.path.append(PACKAGES)
            import torch_stand_in

            torch_stand_in.install()
        import torch
        from mmasim.nv_ptx import MMA, isa_mma
    except Exception as error:  # Whatever an import of third-party code may do.
        print(f"mmasim cannot be imported: {error}", file=sys.stderr)
        return SKIPPED

    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

    def tensor(patterns, rows, dtype):
        size = dtype.itemsize
        limit = 1 << (8 * size - 1) if size > 1 else 1 << 8
        wrapped = [p - 2 * limit if p >= limit else p for p in patterns]
        return torch.tensor(wrapped, dtype=integers[size]).view(dtype).reshape(rows, -1)

    def patterns_of(matrix):
        size = matrix.dtype.itemsize
        flat = matrix.contiguous().flatten().view(integers[size]).tolist()
        return [value & ((1 << 8 * size) - 1) for value in flat]

    generator = random.Random(arguments.seed)
    for architecture, number in ARCHITECTURES.items():
        for form in isa_mma.mma_shape_and_type[architecture]:
            shape, d_type, a_type, b_type, c_type = form.split(".")
            if shape == "m8n8k4" and a_type == "f16":
                continue
            operation = MMA(architecture, form)
            for index in range(arguments.count):
                special = index % 4 == 3 and a_type != "f64"
                m, n, k = operation.m, operation.n, operation.k
                a = [draw(generator, a_type, special) for _ in range(m * k)]
                b = [draw(generator, b_type, special) for _ in range(n * k)]
                c = [draw(generator, c_type, special) for _ in range(m * n)]
                d = operation(
                    tensor(a, m, operation.a_type),
                    tensor(b, n, operation.b_type).T.contiguous(),
                    tensor(c, m, operation.c_type),
                )
                words = [str(number), form]
                for name, matrix in (("A", a), ("B", b), ("C", c), ("D", patterns_of(d))):
                    words.append(name)
                    words.extend(f"{pattern:x}" for pattern in matrix)
                print(" ".join(words))
    return 0


if __name__ == "__main__":
    sys.exit(main())

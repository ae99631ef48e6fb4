"""The part of torch that mmasim's products on the CPU use, by numpy and ml_dtypes.

mmasim needs torch for its arrays alone, and torch brings gigabytes. What rounds and what adds is
mmasim's own; here are arrays, exact functions and conversions. install() puts it in torch's place.
"""

import subprocess
import sys
import tempfile
import types

import ml_dtypes
import numpy

DTYPES = {
    "uint8": numpy.uint8,
    "int16": numpy.int16,
    "int32": numpy.int32,
    "int64": numpy.int64,
    "float16": numpy.float16,
    "float32": numpy.float32,
    "float64": numpy.float64,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
}


class Tensor(numpy.ndarray):
    is_cuda = False

    def to(self, dtype):
        return self.astype(dtype)

    def int(self):
        return self.astype(numpy.int32)

    def float(self):
        return self.astype(numpy.float32)

    def double(self):
        return self.astype(numpy.float64)

    def abs(self):
        return numpy.abs(self)

    def isnan(self):
        return numpy.isnan(self)

    def contiguous(self):
        return self.copy()

    def numel(self):
        return self.size

    def data_ptr(self):
        return self.ctypes.data

    def unsqueeze(self, dim):
        return numpy.expand_dims(self, dim)

    def expand(self, *sizes):
        shape = [old if new == -1 else new for old, new in zip(self.shape, sizes)]
        return numpy.broadcast_to(self, shape, subok=True)

    def sum(self, dim):
        return numpy.sum(self.view(numpy.ndarray), axis=dim).view(Tensor)

    def max(self, dim):
        return types.SimpleNamespace(values=numpy.max(self.view(numpy.ndarray), axis=dim).view(Tensor))


def exp2(exponents):
    """Of whole numbers, exact; of other types than float64 it is float32, as in torch."""
    dtype = numpy.float64 if exponents.dtype == numpy.float64 else numpy.float32
    return numpy.ldexp(dtype(1), exponents.astype(numpy.int32)).view(Tensor)


FOLDER = tempfile.TemporaryDirectory()


def load(name, sources, extra_cflags, is_python_module):
    path = f"{FOLDER.name}/{name}.so"
    subprocess.run(["g++", "-shared", "-fPIC", *extra_cflags, "-o", path, *sources], check=True)
    return path


def install():
    numpy.seterr(all="ignore")
    torch = types.ModuleType("torch")
    for name, dtype in DTYPES.items():
        setattr(torch, name, numpy.dtype(dtype))
    torch.Tensor = Tensor
    torch.tensor = lambda values, dtype: numpy.array(values, dtype).view(Tensor)
    torch.cat = lambda tensors, dim: numpy.concatenate(tensors, axis=dim).view(Tensor)
    torch.empty_like = numpy.empty_like
    torch.exp2 = exp2
    torch.frexp = numpy.frexp
    torch.floor = numpy.floor
    torch.round = numpy.rint
    torch.trunc = numpy.trunc
    torch.cuda = types.SimpleNamespace(is_available=lambda: False)
    utils = types.ModuleType("torch.utils")
    extension = types.ModuleType("torch.utils.cpp_extension")
    extension.load = load
    torch.utils = utils
    utils.cpp_extension = extension
    sys.modules.update(
        {"torch": torch, "torch.utils": utils, "torch.utils.cpp_extension": extension}
    )

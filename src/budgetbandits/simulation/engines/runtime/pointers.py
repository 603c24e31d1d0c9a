"""Bare pointers for compiled code.

Handing NumPy arrays, or a tuple of them, to a compiled function that is not inlined counts references at every call:
a dozen atomic operations around a heap step of ten nanoseconds. A pointer is a plain number. It knows neither its
length nor its owner: whoever holds the arrays keeps them alive while compiled code runs.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def float_pointer(typing_context, address):
    """An address as a pointer to float64."""

    def code(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(types.int64), code


@intrinsic
def whole_pointer(typing_context, address):
    """An address as a pointer to int64."""

    def code(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())

    return types.CPointer(types.int64)(types.int64), code


@intrinsic
def pointer_to(typing_context, array):
    """A pointer to an array's data, indexed flat and without bounds."""

    def code(context, builder, signature, arguments):
        return context.make_array(signature.args[0])(context, builder, value=arguments[0]).data

    return types.CPointer(array.dtype)(array), code


@intrinsic
def pointer_in(typing_context, number):
    """A pointer to float64 whose address is the bits of a float (`extras.address_as_float`)."""

    def code(context, builder, signature, arguments):
        bits = builder.bitcast(arguments[0], ir.IntType(64))
        return builder.inttoptr(bits, ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(types.float64), code

"""Functions of a policy, compiled, as the engines call them: by address.

An address and a signature are a type of their own to Numba, so the engines that call it stay in the disk cache.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

from numba import njit, types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.core.typing.typeof import typeof_impl

OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}


def compiled_function(function: FunctionType, signature: Any, cached: bool) -> Dispatcher:
    """The very function of the policy; kept on disk if ``cached``, beside the file it stands in."""
    try:
        compiled: Dispatcher = njit(signature, cache=cached, **OPTIONS)(function)
    except RuntimeError:  # no file to keep the cache beside: typed at a prompt
        compiled = njit(signature, **OPTIONS)(function)
    return compiled


def why_not(error: NumbaError) -> str:
    """Why Numba could not compile a function, in a line, with what to do about it if that is known."""
    # without the folders that modules lie in on this machine
    said = re.sub(r" from '[^']*'", "", " ".join(str(error).split()))
    if called := re.search(r"Untyped global name '(\w+)'.*Cannot determine Numba type of <class 'function'>", said):
        return f"it calls {called[1]}, a function of a library that is not compiled; write it with NumPy's functions"
    return said[:200]


class Address(types.WrapperAddressProtocol):  # type: ignore[misc]
    """A compiled function as Numba's first-class function.

    It takes 0.1 s to compile and is not worth a cache, which would not notice a changed formula behind it.
    """

    def __init__(self, signature: Any, function: Callable[..., Any]) -> None:
        self._signature = signature
        self.type = types.FunctionType(signature)
        self.dispatcher: Dispatcher = njit(signature, **OPTIONS)(function)
        compiled = self.dispatcher.overloads[signature.args]
        self._address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self) -> int:
        return self._address

    def signature(self) -> Any:
        return self._signature


@typeof_impl.register(Address)  # type: ignore[untyped-decorator]
def _type_of(address: Address, context: object) -> types.FunctionType:
    """Numba asks with every call of an engine, and would make the type anew each time, which takes longer than many a
    stretch that is played."""
    return address.type

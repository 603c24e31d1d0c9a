"""Compiled random draws shared by the engines.

A stream is the *address* of four uint64 words (xoshiro256++).  Handing an array to a small compiled function makes
Numba count references at every call, which costs more than the draw itself; an address is a plain integer.  The
owner of the array must keep it alive while compiled code runs; `new_stream` returns both.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.records import word_pointer

LONGEST_WAIT = 1 << 61  # a waiting time no run can reach; two of them still fit in an int64


def new_stream(words: np.ndarray) -> np.ndarray:
    """The generator state from at least four seed words; xoshiro must not start at zero."""
    state = np.array(words[:4], dtype=np.uint64)
    if not state.any():
        state[0] = np.uint64(0x9E3779B97F4A7C15)
    return state


@njit(cache=True, nogil=True, forceinline=True)
def next_word(stream):
    """One step of xoshiro256++ (Blackman and Vigna)."""
    state = word_pointer(stream)
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return result


@njit(cache=True, nogil=True, forceinline=True)
def uniform(stream):
    """A uniform number in the open interval (0, 1), of 52 bits and a half: 53 bits and a half would round up to 1."""
    return (float(next_word(stream) >> np.uint64(12)) + 0.5) * 2.220446049250313e-16


def _layers(density, inverse, tail, low: float, high: float, bits: int):
    """256 layers of equal area under a density: their widths, limits and heights, and the edge of the lowest.

    ``inverse`` says where the density has a height, ``tail`` how much area there is beyond a point. The edge lies
    between ``low`` and ``high``, where the top layer closes at height 1.
    """

    def closure(edge: float) -> tuple[float, list[float], float]:
        area = tail(edge)
        points = [edge]
        for _ in range(254):
            height = area / points[-1] + density(points[-1])
            if height >= 1.0:
                return 1.0, points, area
            points.append(inverse(height))
        return area / points[-1] + density(points[-1]) - 1.0, points, area

    # A wider edge means smaller layers, so the closing gap falls as the edge grows: plain bisection.
    for _ in range(200):
        middle = 0.5 * (low + high)
        if closure(middle)[0] > 0.0:
            low = middle
        else:
            high = middle
    _, points, area = closure(high)
    inner = points[::-1]  # the right edges of all layers but layer 0, which is the base with the tail
    edges, scale = np.array([area / density(high), *inner]), 2.0**bits
    limits = np.array([high, 0.0, *inner[:-1]]) / edges * scale
    return edges / scale, limits.astype(np.uint64), np.array([1.0, *map(density, inner)]), high


NORMAL_WIDTH, NORMAL_LIMIT, NORMAL_HEIGHT, NORMAL_EDGE = _layers(
    lambda x: math.exp(-0.5 * x * x),
    lambda height: math.sqrt(-2.0 * math.log(height)),
    lambda edge: edge * math.exp(-0.5 * edge * edge) + math.sqrt(math.pi / 2) * math.erfc(edge / math.sqrt(2)),
    *(3.5, 3.8, 52),
)
EXPONENTIAL_WIDTH, EXPONENTIAL_LIMIT, EXPONENTIAL_HEIGHT, EXPONENTIAL_EDGE = _layers(
    lambda x: math.exp(-x), lambda height: -math.log(height), lambda edge: (edge + 1.0) * math.exp(-edge), 7.5, 7.9, 53
)


@njit(cache=True, nogil=True)
def normal_edge_case(stream, layer, x):
    """The part of a ziggurat layer that needs the density itself; returns (accepted, value)."""
    if layer == 0:
        while True:
            beyond = exponential(stream) / NORMAL_EDGE
            if 2.0 * exponential(stream) > beyond * beyond:
                return True, NORMAL_EDGE + beyond if x >= 0.0 else -NORMAL_EDGE - beyond
    height = NORMAL_HEIGHT[layer] + (NORMAL_HEIGHT[layer - 1] - NORMAL_HEIGHT[layer]) * uniform(stream)
    return height < math.exp(-0.5 * x * x), x


@njit(cache=True, nogil=True, forceinline=True)
def normal(stream):
    """Standard normal by Marsaglia and Tsang's ziggurat: 99 % of the draws cost one word and one product."""
    while True:
        word = next_word(stream)
        layer = np.int64(word & np.uint64(0xFF))
        magnitude = word >> np.uint64(12)
        x = float(magnitude) * NORMAL_WIDTH[layer]
        if word & np.uint64(0x100):
            x = -x
        if magnitude < NORMAL_LIMIT[layer]:
            return x
        accepted, value = normal_edge_case(stream, layer, x)
        if accepted:
            return value


@njit(cache=True, nogil=True, forceinline=True)
def exponential(stream):
    """Standard exponential by the ziggurat; at or above 0."""
    beyond = 0.0
    while True:
        word = next_word(stream)
        layer = np.int64(word & np.uint64(0xFF))
        magnitude = word >> np.uint64(11)
        x = float(magnitude) * EXPONENTIAL_WIDTH[layer]
        if magnitude < EXPONENTIAL_LIMIT[layer]:
            return beyond + x
        if layer == 0:
            beyond += EXPONENTIAL_EDGE  # the tail of an exponential is an exponential again
            continue
        height = EXPONENTIAL_HEIGHT[layer]
        height += (EXPONENTIAL_HEIGHT[layer - 1] - height) * uniform(stream)
        if height < math.exp(-x):
            return beyond + x


@njit(cache=True, nogil=True, error_model="numpy")
def gamma_log_acceptance(x, scaled, centre):
    """log of the probability with which Marsaglia and Tsang keep centre (1 + scaled)^3, scaled = spread x > -1."""
    v = (1.0 + scaled) ** 3
    return 0.5 * x * x + centre * (1.0 - v + math.log(v))


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def gamma_prepared(stream, centre, spread):
    """Marsaglia and Tsang's gamma; centre = shape - 1/3, spread = 1/sqrt(9 centre), shape >= 1.

    The two constants cost a root and a division, as much as the draw; callers that draw often keep them.
    """
    while True:
        x = normal(stream)
        v = 1.0 + spread * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = uniform(stream)
        square = x * x
        if u < 1.0 - 0.0331 * square * square:
            return centre * v
        if math.log(u) < 0.5 * square + centre * (1.0 - v + math.log(v)):
            return centre * v


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def gamma(stream, shape):
    """Gamma(shape, 1) for any shape > 0; below 1 a power of a uniform lowers the shape by one."""
    if shape >= 1.0:
        centre = shape - 1.0 / 3.0
        return gamma_prepared(stream, centre, 1.0 / math.sqrt(9.0 * centre))
    centre = shape + 2.0 / 3.0
    return gamma_prepared(stream, centre, 1.0 / math.sqrt(9.0 * centre)) * math.exp(-exponential(stream) / shape)


@njit(cache=True, nogil=True, error_model="numpy")
def beta(stream, a, b):
    """Beta(a, b); 0 when a tiny shape underflows, which callers treat as the rejected end of the interval."""
    first = gamma(stream, a)
    second = gamma(stream, b)
    if first <= 0.0:
        return 0.0
    return first / (first + second)


@njit(cache=True, nogil=True, error_model="numpy")
def waiting_rate(log_probability):
    """-1/log(1-p) from log p: an exponential times this, rounded up, is geometric(p)."""
    if log_probability < -700.0:
        return np.inf
    return -1.0 / math.log1p(-math.exp(log_probability))


@njit(cache=True, nogil=True, forceinline=True)
def geometric_from_rate(stream, rate):
    """Trials up to and including the first success, clamped to LONGEST_WAIT."""
    wait = exponential(stream) * rate
    if wait < 1e18:
        return np.int64(wait) + 1
    return np.int64(LONGEST_WAIT)


@njit(cache=True, nogil=True, error_model="numpy")
def geometric(stream, probability):
    """Trials up to and including the first success for 0 <= p <= 1, clamped to LONGEST_WAIT."""
    if probability >= 1.0:
        return np.int64(1)
    if probability < 1e-300:
        return np.int64(LONGEST_WAIT)
    return geometric_from_rate(stream, -1.0 / math.log1p(-probability))

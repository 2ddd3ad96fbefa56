"""Compiled loops over probability vectors: special functions and the three Dirichlet solvers.

Everything here is written so that LLVM turns the inner loops into SIMD code: no branch, no call
to the C library (hence a logarithm of our own), no division check. A row costs about 5 ns per
element and Newton step. The functions release the GIL, so that `dirichlet.py` can spread the
rows over threads; nothing else may import this file, because importing it imports numba.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.polynomial import Chebyshev, Polynomial
from scipy.special import zeta

# Contracting a * b + c is safe everywhere; re-ordering a sum only where it is plain (`_total`).
_inline = njit(inline="always", error_model="numpy", fastmath={"contract"})
_compiled = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})

EULER_GAMMA = 0.5772156649015329
HALF_LOG_2PI = 0.9189385332046728
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10

# c(t) near 0, where its printed quotient loses all digits: its Taylor coefficients are
# 2 (-1)^k zeta(k) (k - 1) / k; a polynomial through the Chebyshev points needs fewer terms.
_SERIES_BELOW = 0.15
_orders = np.arange(2, 40)
_taylor = 2.0 * (-1.0) ** _orders * zeta(_orders) * (_orders - 1) / _orders
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9 = (
    Chebyshev.interpolate(Polynomial(_taylor), 9, domain=[0.0, _SERIES_BELOW])
    .convert(kind=Polynomial)
    .coef.tolist()
)


@intrinsic
def _as_bits(typing_context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _as_float(typing_context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@_inline
def _log(x):
    """Natural logarithm of a positive normal number, within one unit in the last place.

    x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m by the classic series in f / (2 + f). The shifts
    are arranged so that AVX2, which has no 64-bit arithmetic shift, can do them.
    """
    bits = _as_bits(x)
    e = ((bits - 0x3FE6A09E667F3BCD + (1 << 62)) >> 52) - (1 << 10)
    f = _as_float(bits - (e << 52)) - 1.0
    exponent = _as_float(e + 0x4338000000000000) - 6755399441055744.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332))
    even = z * (
        0.6666666666666735130
        + w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591))
    )
    half = 0.5 * f * f
    return exponent * LN2_HIGH - ((half - (s * (half + odd + even) + exponent * LN2_LOW)) - f)


# The asymptotic series hold from 7 on; smaller arguments climb there by seven recurrences, and
# larger ones climb too, because a loop without a branch is four times faster than one with.


@_inline
def _digamma_tail(z):
    tail = 1 / 132 - z * (691 / 32760 - z * (1 / 12 - z * (3617 / 8160)))
    return 1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z * tail)))


@_inline
def _trigamma_tail(z):
    tail = 5 / 66 - z * (691 / 2730 - z * (7 / 6 - z * (3617 / 510)))
    return 1 / 6 - z * (1 / 30 - z * (1 / 42 - z * (1 / 30 - z * tail)))


@_inline
def _log_gamma_tail(z):
    tail = 1 / 1188 - z * (691 / 360360 - z * (1 / 156 - z * (3617 / 122400)))
    return 1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z * tail)))


@_inline
def _digamma_and_trigamma(x):
    sum_1, sum_2 = 0.0, 0.0
    for j in range(7):
        r = 1.0 / (x + j)
        sum_1 += r
        sum_2 += r * r
    y = x + 7.0
    q = 1.0 / y
    z = q * q
    digamma = _log(y) - 0.5 * q - z * _digamma_tail(z) - sum_1
    trigamma = q + 0.5 * z + z * q * _trigamma_tail(z) + sum_2
    return digamma, trigamma


@_inline
def _log_gamma_and_digamma(x):
    """Both at once: they share a logarithm, and P'/P of the climbed product replaces the sum."""
    product, derivative = 1.0, 0.0
    for j in range(7):
        derivative = derivative * (x + j) + product
        product *= x + j
    y = x + 7.0
    q = 1.0 / y
    z = q * q
    log_y = _log(y)
    digamma = log_y - 0.5 * q - z * _digamma_tail(z) - derivative / product
    log_gamma = (y - 0.5) * log_y - y + HALF_LOG_2PI + q * _log_gamma_tail(z) - _log(product)
    return log_gamma, digamma


@_inline
def _curvature(t, log_gamma, digamma):
    """c(t) of the paper's Lemma 1, given phi(t) = log Gamma(t + 1) and phi'(t)."""
    series = _C5 + t * (_C6 + t * (_C7 + t * (_C8 + t * _C9)))
    series = _C0 + t * (_C1 + t * (_C2 + t * (_C3 + t * (_C4 + t * series))))
    quotient = 2.0 * (digamma * t - log_gamma) / (t * t)
    return series if t < _SERIES_BELOW else quotient


@njit(nogil=True, error_model="numpy", fastmath=True)
def _total(x):
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@_compiled
def log_gamma_and_digamma(x, log_gamma, digamma):
    for i in range(x.size):
        log_gamma[i], digamma[i] = _log_gamma_and_digamma(x[i])


@_compiled
def trigamma(x, out):
    for i in range(x.size):
        out[i] = _digamma_and_trigamma(x[i])[1]


@_compiled
def curvature(t, out):
    for i in range(t.size):
        log_gamma, digamma = _log_gamma_and_digamma(t[i] + 1.0)
        out[i] = _curvature(t[i], log_gamma, digamma)


@_compiled
def _mm_step(alpha, precision, mean_log, out):
    """One step of the paper's Algorithm 1: the positive root of c a^2 + b a = 1, per element."""
    digamma_precision = _digamma_and_trigamma(precision)[0]
    for i in range(alpha.size):
        t = alpha[i]
        log_gamma, digamma = _log_gamma_and_digamma(t + 1.0)
        c = _curvature(t, log_gamma, digamma)
        b = digamma - digamma_precision - c * t - mean_log[i]
        root = np.sqrt(b * b + 4.0 * c)
        # Two forms of the same root: each is free of cancellation for one sign of b.
        out[i] = 2.0 / (b + root) if b > 0.0 else (root - b) / (2.0 * c)
    return _total(out)

"""Compiled loops over probability vectors: special functions and the three Dirichlet solvers.

Everything here is written so that LLVM turns the inner loops into SIMD code: no branch, no call
to the C library (hence a logarithm of our own), no division check. A row costs about 5 ns per
element and Newton step. The functions release the GIL, so that `dirichlet.py` can spread the
rows over threads; nothing else may import this file, because importing it imports numba.
"""

import math
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

MOST_NEWTON_STEPS = 40
NEWTON_TOLERANCE = 1e-5  # of the last relative step; the error left is about its square
REACHED = 5.0  # MM counts as converged when exp(-REACHED) of the distance is left
BURST = 12  # real MM steps between two leaps
MOST_GROWTH = 2.0  # a leap may at most triple the precision

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
    """Natural logarithm of a positive normal number, within 1 ulp.

    x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m by a series in s = f / (2 + f), f = m - 1. The
    shifts are arranged so that AVX2, which has no 64-bit arithmetic shift, can do them. The series'
    coefficients, and the two halves of log 2, are those of e_log.c in fdlibm, whose notice is:

    Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
    Developed at SunPro, a Sun Microsystems, Inc. business. Permission to use, copy, modify, and
    distribute this software is freely granted, provided that this notice is preserved.
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
    """Return log Gamma and digamma of x: they share a logarithm, and P'/P replaces a sum."""
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


@njit(nogil=True, error_model="numpy", fastmath=True)
def _dot(x, y):
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@_compiled
def fill_log_gamma_and_digamma(x, log_gamma, digamma):
    """Fill two arrays with log Gamma and digamma of x."""
    for i in range(x.size):
        log_gamma[i], digamma[i] = _log_gamma_and_digamma(x[i])


@_compiled
def fill_trigamma(x, out):
    """Fill an array with trigamma of x."""
    for i in range(x.size):
        out[i] = _digamma_and_trigamma(x[i])[1]


@_compiled
def fill_curvature(t, out):
    """Fill an array with c(t) of Lemma 1."""
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


@_compiled
def _add_change(new, old, changed, size):
    """Return `changed` plus the squared change of a row, and `size` plus its squared size."""
    for i in range(new.size):
        changed += (new[i] - old[i]) ** 2
        size += old[i] ** 2
    return changed, size


@_compiled
def mm_rows(mean_log, alpha, steps):
    """Overwrite each row of `alpha` by MM steps; return squared change and size of the last one."""
    changed, size = 0.0, 0.0
    new = np.empty(alpha.shape[1])
    for row in range(alpha.shape[0]):
        precision = _total(alpha[row])
        for step in range(steps):
            precision = _mm_step(alpha[row], precision, mean_log[row], new)
            if step == steps - 1:
                changed, size = _add_change(new, alpha[row], changed, size)
            alpha[row] = new
    return changed, size


@_compiled
def minka_rows(mean_log, alpha, steps):
    """Take steps of Minka's majorant on every row: each inverts digamma, by five Newton steps."""
    changed, size = 0.0, 0.0
    new = np.empty(alpha.shape[1])
    for row in range(alpha.shape[0]):
        for step in range(steps):
            digamma_precision = _digamma_and_trigamma(_total(alpha[row]))[0]
            for i in range(new.size):
                target = digamma_precision + mean_log[row, i]
                x = alpha[row, i]
                for _ in range(5):
                    digamma, trigamma = _digamma_and_trigamma(x)
                    x = _scaled(x, (target - digamma) / (x * trigamma))
                new[i] = x
            if step == steps - 1:
                changed, size = _add_change(new, alpha[row], changed, size)
            alpha[row] = new
    return changed, size


@_inline
def _scaled(x, change):
    """Return x exp(change) to first order, positive whatever the change."""
    return x * (1.0 + change) if change > 0.0 else x / (1.0 - change)


@_compiled
def _first_guess(mean_log, alpha):
    """Near the optimum in closed form, from digamma(x) ~ log(x - 1/2) (-1/x for small x)."""
    total = 0.0
    for i in range(mean_log.size):
        total += math.exp(mean_log[i])
    size = mean_log.size
    spread = max(1.0 - total, 1e-9)
    precision = max(0.5 * (size - total) / spread, 1.0)
    shift = math.log(precision)
    for i in range(size):
        target = shift + mean_log[i]
        small = -1.0 / (min(target, -2.0) + EULER_GAMMA)
        alpha[i] = small if target < -2.22 else math.exp(target) + 0.5


@_compiled
def _newton(mean_log, alpha, most_precision, digamma, trigamma):
    """Overwrite one row with its maximum-likelihood alpha; return its slack, -1 if out of reach.

    Newton on log alpha. The Hessian is a diagonal minus a multiple of the ones matrix, so a step
    costs one pass. The slack 1 - psi'(s) sum 1/psi'(alpha) is what keeps that matrix positive
    definite: it is small when the likelihood is nearly flat along the precision s.
    """
    for _ in range(MOST_NEWTON_STEPS):
        precision = _total(alpha)
        if not precision < most_precision:
            return -1.0
        digamma_precision, trigamma_precision = _digamma_and_trigamma(precision)
        for i in range(alpha.size):
            digamma[i], trigamma[i] = _digamma_and_trigamma(alpha[i])
        for i in range(alpha.size):  # from here on: the gradient, and 1 / psi'
            trigamma[i] = 1.0 / trigamma[i]
            digamma[i] = digamma_precision + mean_log[i] - digamma[i]
        slack = 1.0 - trigamma_precision * _total(trigamma)
        shift = trigamma_precision * _dot(digamma, trigamma) / max(slack, 1e-12)
        # The precision may grow tenfold a step at most: far out the model is only a guess.
        largest = 0.0
        for i in range(alpha.size):
            digamma[i] = (digamma[i] + shift) * trigamma[i] / alpha[i]
        for i in range(alpha.size):
            largest = max(largest, abs(digamma[i]))
        damping = min(1.0, 9.0 / largest) if largest > 0.0 else 1.0
        for i in range(alpha.size):
            alpha[i] = _scaled(alpha[i], damping * digamma[i])
        if largest < NEWTON_TOLERANCE:
            return slack
    return -1.0


@_compiled
def _leaping_mm(mean_log, alpha, steps, new):
    """Where `steps` MM steps lead, by taking some and leaping over the others.

    Each MM step at least halves the distance to a curve along which only the precision still
    moves, by increments in near-geometric progression (constant ones if the likelihood is
    unbounded). A burst of real steps reaches the curve and measures the progression; the leap
    sums it. Leaps are short enough to stay near the curve.
    """
    precision = _total(alpha)
    before, last = precision, precision
    done = 0
    while done < steps:
        for _ in range(min(BURST, steps - done)):
            before, last = last, precision
            precision = _mm_step(alpha, precision, mean_log, new)
            for i in range(alpha.size):
                alpha[i], new[i] = new[i], alpha[i]
        done += BURST
        gain = precision - last
        if abs(gain) < 1e-12 * precision:
            return
        leap = steps - done - BURST
        if leap <= 0:
            continue
        ratio = min(gain / (last - before), 1.0) if last != before else 0.0
        if ratio <= 0.0:
            continue
        most = MOST_GROWTH * precision / abs(gain)
        if ratio < 1.0 - 1e-9:
            factor = ratio * (1.0 - ratio**leap) / (1.0 - ratio)
            if factor > most:
                leap = int(math.log(1.0 - most * (1.0 - ratio) / ratio) / math.log(ratio))
                factor = ratio * (1.0 - ratio**leap) / (1.0 - ratio)
        else:
            leap = min(leap, int(most))
            factor = float(leap)
        if leap <= 0:
            continue
        for i in range(alpha.size):
            alpha[i] = _scaled(alpha[i], factor * (alpha[i] - new[i]) / alpha[i])
        precision = _total(alpha)
        done += leap


@_compiled
def fast_rows(mean_log, alpha, steps):
    """Overwrite each row with where `steps` MM steps lead; return how many rows leapt."""
    size = alpha.shape[1]
    optimum, first, second = np.empty(size), np.empty(size), np.empty(size)
    # Along the slow direction MM closes a share slack / 2 of the distance each step.
    least_slack = 2.0 * REACHED / steps
    most_precision = size / least_slack
    leapt = 0
    for row in range(alpha.shape[0]):
        _first_guess(mean_log[row], optimum)
        slack = _newton(mean_log[row], optimum, most_precision, first, second)
        if slack > least_slack:
            alpha[row] = optimum
        else:
            _leaping_mm(mean_log[row], alpha[row], steps, first)
            leapt += 1
    return leapt


@_compiled
def log_normalizer_rows(alpha, out):
    """Fill an array with log B(alpha) of each row, from log Gamma of alpha and of its sum."""
    terms = np.empty(alpha.shape[1])
    for row in range(alpha.shape[0]):
        for i in range(terms.size):
            terms[i] = _log_gamma_and_digamma(alpha[row, i])[0]
        out[row] = _total(terms) - _log_gamma_and_digamma(_total(alpha[row]))[0]

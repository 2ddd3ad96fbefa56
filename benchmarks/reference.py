"""`reference`: Algorithm 2 as the paper prints it, in plain NumPy and SciPy.

Every class, every MM step, at most 1000 of them with a test every 50, no active set, no threads;
the constants are those of the published experiments. It is what the speed of `transduce` is
measured against, and a second opinion on its labels.
"""

import numpy as np
from scipy.special import digamma, gammaln

from transduce.task import Task

FLOOR = 1e-15


def mm_quadratic(mean_log: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Algorithm 1 on all classes at once."""
    for step in range(1, 1001):
        slope = digamma(alpha + 1)
        c = 2 * (slope * alpha - gammaln(alpha + 1)) / alpha**2
        b = slope - digamma(alpha.sum(1, keepdims=True)) - c * alpha - mean_log
        new: np.ndarray = (-b + np.sqrt(b**2 + 4 * c)) / (2 * c)
        if step % 50 == 0 and ((new - alpha) ** 2).sum() < 1e-11 * (alpha**2).sum():
            return new
        alpha = new
    return alpha


def em_dirichlet(task: Task, *, hard: bool, max_iter: int) -> np.ndarray:
    """Assignments of the queries after `max_iter` iterations of Algorithm 2."""
    n_classes = task.n_classes
    weight = max(1, n_classes // 5)
    log_query = np.log(task.query + FLOOR)
    fixed, fixed_total = np.zeros(n_classes), np.zeros((n_classes, n_classes))
    if task.support is not None and task.support_labels is not None:
        one_hot = np.eye(n_classes)[task.support_labels]
        fixed, fixed_total = one_hot.sum(0), one_hot.T @ np.log(task.support + FLOOR)
    u = task.zero_shot.astype(np.float64)
    alpha = np.ones((n_classes, n_classes))
    mean_log = np.zeros_like(alpha)
    for _ in range(max_iter):
        mass = u.sum(0) + fixed
        full = mass > FLOOR
        total = u.T @ log_query + fixed_total
        mean_log[full] = total[full] / mass[full, None]
        alpha = np.where(full[:, None], mm_quadratic(mean_log, alpha), alpha)
        log_pi = np.log(u.mean(0) + FLOOR)
        log_normalizer = gammaln(alpha).sum(1) - gammaln(alpha.sum(1))
        scores = log_query @ (alpha - 1).T - log_normalizer + weight * log_pi
        u = np.exp(scores - scores.max(1, keepdims=True))
        u /= u.sum(1, keepdims=True)
        if hard:
            u = np.eye(n_classes)[u.argmax(1)]
    return u

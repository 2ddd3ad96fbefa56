"""Batches in the geometry of CLIP: image-text cosines are small, image-image ones large."""

import numpy as np

from transduce import Task


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def clip_like(*, images=400, classes=10, present=10, shots=0, features=256, seed=0, dtype=float):
    """A task in the embedding space and the true labels; the text knows part of each class."""
    generator = np.random.default_rng(seed)
    image_side, text_side = unit(generator.normal(size=(2, features)))
    centers = unit(generator.normal(size=(classes, features)))
    texts = unit(text_side + 0.1 * centers + 0.01 * generator.normal(size=centers.shape))
    labels = np.arange(images) % present
    shot_labels = np.repeat(np.arange(classes), shots)

    def draw(of):
        jitter = generator.normal(size=(len(of), features)) / np.sqrt(features)
        return (image_side + 0.6 * centers[of] + jitter).astype(dtype)

    queries = draw(labels)
    task = Task.from_embeddings(
        queries,
        texts.astype(dtype),
        support=draw(shot_labels) if shots else None,
        support_labels=shot_labels if shots else None,
        space="embedding",
    )
    return task, labels


def text_guess(task, scale=100.0):
    """softmax(scale cos), entry by entry."""
    guess = np.empty((task.n_queries, task.n_classes))
    for i, x in enumerate(task.query):
        scores = np.array([scale * float(x @ t) for t in task.class_embeddings])
        exponents = np.exp(scores - scores.max())
        guess[i] = exponents / exponents.sum()
    return guess


def directed_graph(rows, among, count, *, skip_self):
    """W with the cosines of the nearest neighbors, entry by entry."""
    graph = np.zeros((len(rows), len(among)))
    for i, x in enumerate(rows):
        cosines = [float(x @ other) for other in among]
        order = sorted(range(len(among)), key=lambda j: -cosines[j])
        order = [j for j in order if not (skip_self and j == i)][:count]
        for j in order:
            graph[i, j] = max(cosines[j], 0.0)
    return graph


def accuracy(method, **problem):
    """Mean accuracy over five seeds."""
    problems = [clip_like(seed=seed, **problem) for seed in range(5)]
    return np.mean([np.mean(method.predict(task).labels == labels) for task, labels in problems])


def softmax(scores):
    exponents = np.exp(np.asarray(scores) - np.max(scores))
    return exponents / exponents.sum()


FEW = {"images": 64, "classes": 40, "present": 3}  # few of many classes
SMALL = {"images": 14, "classes": 4, "present": 4, "features": 6}  # for evaluations by loops

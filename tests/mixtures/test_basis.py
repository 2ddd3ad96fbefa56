"""Rows in a basis of their own lie to each other as in their features."""

import numpy as np
import pytest

from transduce.mixtures.basis import Basis
from transduce.mixtures.within import scaling_within


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    centered = random.normal(size=(12, 40)) * random.uniform(0.5, 2.0, 40)
    centered[7] = centered[3]  # a copy: one row more than directions
    return (centered - centered.mean(0)).astype(np.float32)


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_scaled_and_whitened_rows_have_the_same_products(rows, share):
    z = np.random.default_rng(1).dirichlet(np.full(5, 0.3), len(rows))
    z[:, 4] = 0.0  # a class without images
    basis = Basis.of(rows)
    coordinates = basis.coordinates(rows)
    np.testing.assert_allclose(basis.rows(coordinates), rows, atol=1e-5)

    def scaled(rows):
        wide = rows.astype(np.float64)
        scaling = basis.scaling_within if rows.shape[1] == len(rows) else scaling_within
        return scaling(
            wide.T @ wide, z.T @ wide, z.sum(0), len(wide), pseudo_images=2.0, share=share
        )

    features, inside = scaled(rows), scaled(coordinates)
    np.testing.assert_allclose(inside.scale, features.scale, rtol=1e-5)
    in_features, in_basis = rows @ features.transform.T, coordinates @ inside.transform.T
    expected = in_features @ in_features.T
    np.testing.assert_allclose(in_basis @ in_basis.T, expected, atol=1e-4)
    again = basis.in_features(inside)
    assert again.share == features.share == share
    np.testing.assert_allclose(again.transform, features.transform, atol=1e-4)


def test_copies_of_a_few_rows_are_not_whitened(rows):
    copies = np.repeat(rows[:3], 4, axis=0)
    z = np.repeat(np.eye(3), 4, axis=0)
    basis = Basis.of(copies)
    wide = basis.coordinates(copies).astype(np.float64)
    found = basis.scaling_within(
        wide.T @ wide, z.T @ wide, z.sum(0), 12, pseudo_images=2.0, share=0.5
    )
    assert found.share == 0.0
    assert np.isfinite(found.transform).all()

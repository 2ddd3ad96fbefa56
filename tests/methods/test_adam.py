import numpy as np
import pytest
import torch

from transduce.methods.adam import Adam


@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_steps_like_the_reference(weight_decay):
    generator = np.random.default_rng(0)
    start, target = generator.normal(size=(2, 3, 4))
    tensor = torch.tensor(start, requires_grad=True)
    reference = torch.optim.AdamW([tensor], lr=0.1, eps=1e-4, weight_decay=weight_decay)
    ours, adam = start.copy(), Adam(epsilon=1e-4, weight_decay=weight_decay)
    for _ in range(20):
        reference.zero_grad()
        ((tensor - torch.tensor(target)) ** 4).sum().backward()
        reference.step()
        ours = adam.step(ours, 4 * (ours - target) ** 3, 0.1)
    np.testing.assert_allclose(ours, tensor.detach().numpy(), rtol=1e-10)

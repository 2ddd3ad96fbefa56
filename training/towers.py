"""The two towers of the embedded encoder: a small convolutional network and a bag of words."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

# CLIP's embeddings lie in narrow cones: its cosines vary little, its logit scale ends at 100, and
# at the temperature of 30 its probabilities stay soft. So do these: cos = 0.7 + 0.3 (x . y) for
# the learnt directions x and y, by one constant coordinate that both towers share.
VARYING = 0.3


class ImageTower(nn.Module):
    """Pixels [n, 3, 48, 48] to embeddings [n, dimension]."""

    def __init__(self, dimension: int, widths: tuple[int, ...] = (16, 32, 64, 128)) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for width in widths:
            layers += [_convolution(before, width, stride=2), _convolution(width, width, stride=1)]
            before = width
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(2 * before, dimension - 1)

    def forward(self, pixels: Tensor) -> Tensor:
        """Return embeddings of unit length."""
        maps = self.body(pixels)
        # The mean knows the colors around; the maximum knows the one thing, wherever it is.
        pooled = torch.cat([maps.mean((2, 3)), maps.amax((2, 3))], dim=1)
        return in_cone(self.head(pooled))


class TextTower(nn.Module):
    """Token ids [n, length] to embeddings [n, dimension]; the order of words says nothing here."""

    def __init__(self, n_words: int, dimension: int, width: int = 64) -> None:
        super().__init__()
        self.words = nn.Embedding(n_words + 1, width)  # 0 is padding
        self.weight = nn.Embedding(n_words + 1, 1)
        self.mixing = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.head = nn.Linear(width, dimension - 1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return embeddings of unit length."""
        padding = (tokens == 0).unsqueeze(-1)
        weights = self.weight(tokens).masked_fill(padding, -1e9).softmax(1)
        sentence = (weights * self.words(tokens)).sum(1)
        return in_cone(self.head(sentence + self.mixing(sentence)))


def in_cone(directions: Tensor) -> Tensor:
    """Unit vectors around the last axis."""
    constant = torch.full_like(directions[:, :1], (1 - VARYING) ** 0.5)
    return torch.cat([VARYING**0.5 * normalize(directions), constant], dim=1)


def _convolution(before: int, after: int, *, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
    )

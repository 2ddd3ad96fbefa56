"""CoOp through a small CLIP that was really trained, and through open_clip's text tower."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from small_clip import CLASS_NAMES, draw, trained_clip

from transduce import METHODS, InvalidSetting, InvalidTask, Task
from transduce.encoders.context_files import read_context, write_context
from transduce.encoders.open_clip import import_open_clip
from transduce.encoders.prompt_tower import HuggingFaceTower, OpenClipTower
from transduce.errors import InvalidEncoder, InvalidFile
from transduce.methods.coop import CoOp, _Trainer, published_epochs
from transduce.methods.learned_context import LearnedContext, Prompts
from transduce.methods.text_tower import encode_vectors


@pytest.fixture(scope="module")
def tower():
    clip = trained_clip()
    return HuggingFaceTower(clip.model, clip.tokenizer)


@pytest.fixture(scope="module")
def held_out():
    """A 4-shot task of new drawings, with their labels."""
    clip, generator = trained_clip(), np.random.default_rng(5)
    shots, labels = np.repeat(np.arange(9), 4), generator.integers(0, 9, 300)
    with torch.no_grad():
        pooled = clip.model.text_model(clip.captions()).pooler_output
        classes = clip.model.text_projection(pooled).numpy()
    support = clip.embed(draw(shots, generator, noise=0.1))
    images = clip.embed(draw(labels, generator, noise=0.1))
    task = Task.from_embeddings(
        images, classes, support=support, support_labels=shots, space="embedding"
    )
    return task, labels


def accuracy(prediction, labels):
    return np.mean(prediction.labels == labels)


@pytest.mark.parametrize("class_specific", [False, True])
def test_learns_the_shots_and_beats_its_start_on_new_images(tower, held_out, class_specific):
    task, labels = held_out
    method = CoOp(tower=tower, class_names=CLASS_NAMES, class_specific=class_specific)
    start = replace(method, epochs=1, learning_rate=1e-12).predict(task)
    learned = method.predict(task)
    assert learned.trace.iterations == 100  # as published for 4 shots
    assert learned.trace.objective[-1] < 0.7 * learned.trace.objective[0]
    assert accuracy(learned, labels) > accuracy(start, labels) + 0.1
    shape = (16, 32) if not class_specific else (9, 16, 32)
    assert learned.model.context.vectors.shape == shape


def test_gradient_comes_through_the_text_tower(tower, held_out):
    """Against finite differences: a tower that is cut off has none, or a wrong one."""
    task, _ = held_out
    trainer = _Trainer(Prompts(tower, CLASS_NAMES, 4), task.support, task.support_labels, 10.0)
    context = 0.1 * torch.randn(4, 32, generator=torch.Generator().manual_seed(0))
    context.requires_grad_()
    rows = torch.arange(len(task.support))
    (gradient,) = torch.autograd.grad(trainer.loss(context, rows), [context])
    assert float(gradient.abs().max()) > 0.05
    for index in gradient.abs().flatten().topk(3).indices:
        step = torch.zeros(4 * 32)
        step[index] = 0.01
        step = step.reshape(4, 32)
        difference = trainer.loss(context + step, rows) - trainer.loss(context - step, rows)
        expected = float(gradient.flatten()[index])
        assert float(difference.detach()) / 0.02 == pytest.approx(expected, rel=0.05)


def test_leaves_the_tower_as_it_was(tower, held_out):
    before = {name: value.clone() for name, value in trained_clip().model.state_dict().items()}
    CoOp(tower=tower, class_names=CLASS_NAMES, epochs=2).predict(held_out[0])
    for name, value in trained_clip().model.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert all(parameter.grad is None for parameter in trained_clip().model.text_model.parameters())
    assert not tower.token_embedding._forward_hooks


class CutOff:
    """A tower through which no gradient flows: frozen whole, or deaf to the swapped words."""

    def __init__(self, tower, *, deaf):
        self._deaf = deaf
        self.token_embedding, self.scale = tower.token_embedding, tower.scale
        self.longest, self.tokenize, self.pad = tower.longest, tower.tokenize, tower.pad
        self._tower = tower

    def encode(self, tokens):
        if self._deaf:
            weight = self.token_embedding.weight
            return torch.nn.functional.embedding(tokens, weight).mean(1)[:, :16]
        with torch.no_grad():
            return self._tower.encode(tokens)


@pytest.mark.parametrize("deaf", [False, True])
def test_a_tower_without_gradients_is_refused(tower, held_out, deaf):
    with pytest.raises(InvalidSetting, match="Expected gradients to flow through the text tower"):
        CoOp(tower=CutOff(tower, deaf=deaf), class_names=CLASS_NAMES).predict(held_out[0])


def test_context_survives_saving_and_loading(tower, held_out, tmp_path):
    task, _ = held_out
    prediction = CoOp(tower=tower, class_names=CLASS_NAMES, epochs=3).predict(task)
    write_context(tmp_path / "context.safetensors", prediction.model.context)
    loaded = LearnedContext(*read_context(tmp_path / "context.safetensors"))
    assert loaded.class_names == CLASS_NAMES
    again = loaded.classifier(tower).probabilities(task.query)
    np.testing.assert_allclose(again, prediction.probabilities, rtol=1e-6)


def test_common_context_goes_before_other_names(tower, held_out):
    context = (
        CoOp(tower=tower, class_names=CLASS_NAMES, epochs=1).predict(held_out[0]).model.context
    )
    model = context.classifier(tower, ("red", "blue"))
    assert model.probabilities(held_out[0].query).shape == (300, 2)
    own = replace(context, vectors=np.repeat(context.vectors[None], 9, axis=0))
    with pytest.raises(InvalidSetting, match="class-specific"):
        own.classifier(tower, ("red", "blue"))


def test_another_tower_is_refused(tower, held_out):
    context = (
        CoOp(tower=tower, class_names=CLASS_NAMES, epochs=1).predict(held_out[0]).model.context
    )
    with pytest.raises(InvalidSetting, match="text tower the context was learned through"):
        replace(context, tower="0123456789abcdef").classifier(tower)


def test_wrong_files_are_refused(tmp_path):
    from safetensors.numpy import save_file

    (tmp_path / "text.safetensors").write_text("not a tensor file at all")
    with pytest.raises(InvalidFile, match=r"Expected a safetensors file in .*text\.safetensors"):
        read_context(tmp_path / "text.safetensors")
    save_file({"context": np.zeros((16, 8), np.float32)}, tmp_path / "other.safetensors")
    with pytest.raises(InvalidFile, match="Expected a CoOp context"):
        read_context(tmp_path / "other.safetensors")
    with pytest.raises(FileNotFoundError):
        read_context(tmp_path / "missing.safetensors")


def test_construction_says_what_is_needed():
    with pytest.raises(InvalidSetting, match=r"Expected a text tower for coop.*prompt_tower"):
        METHODS["coop"]()


def test_misfits_are_refused(tower, held_out):
    task, _ = held_out
    with pytest.raises(InvalidTask, match="Expected class_names for 9 classes, found 2"):
        CoOp(tower=tower, class_names=["red", "blue"]).predict(task)
    with pytest.raises(InvalidSetting, match=r"at most 24 tokens, found 25 for 'red'"):
        CoOp(tower=tower, class_names=CLASS_NAMES, context_length=21).predict(task)
    wide = Task.from_embeddings(
        np.ones((2, 7)), np.eye(9, 7) + 1, support=np.ones((9, 7)), support_labels=np.arange(9),
        space="embedding",
    )  # fmt: skip
    with pytest.raises(InvalidTask, match="images with 16 features like the text tower's, found 7"):
        CoOp(tower=tower, class_names=CLASS_NAMES).predict(wide)
    with pytest.raises(InvalidEncoder, match="Expected a CLIPModel or CLIPTextModelWithProjection"):
        HuggingFaceTower(torch.nn.Linear(2, 2), None)
    with pytest.raises(InvalidEncoder, match="Expected an open_clip model"):
        OpenClipTower(torch.nn.Linear(2, 2), None)


def test_progress_is_told_to_the_caller_after_each_epoch(tower, held_out, capfd):
    calls = []
    method = CoOp(
        tower=tower, class_names=CLASS_NAMES, epochs=2, progress=lambda *call: calls.append(call)
    )
    losses = method.predict(held_out[0]).trace.objective
    assert calls == [(1, 2, losses[0]), (2, 2, losses[1])]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("shots", "epochs"), [(1, 50), (2, 100), (4, 100), (8, 200), (16, 200)])
def test_epochs_as_published(shots, epochs):
    assert published_epochs(shots) == epochs


def test_rates_as_published(tower):
    method = CoOp(tower=tower)
    rates = [method._rate(epoch, 50) for epoch in range(50)]
    assert rates[0] == 1e-5
    assert rates[25] == pytest.approx(0.001)
    assert all(later < earlier for earlier, later in pairwise(rates[1:]))


@pytest.fixture(scope="module")
def open_clip_tower():
    open_clip = import_open_clip()
    from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg

    torch.manual_seed(0)
    model = CLIP(
        embed_dim=16,
        vision_cfg=CLIPVisionCfg(layers=1, width=32, head_width=16, patch_size=8, image_size=16),
        text_cfg=CLIPTextCfg(width=32, heads=2, layers=1),
    )
    return OpenClipTower(model, open_clip.get_tokenizer("ViT-B-32"))


def test_open_clip_tower_takes_vectors_for_words(open_clip_tower):
    tokens = open_clip_tower.pad(open_clip_tower.tokenize(["a gray wolf.", "cat"]))
    with torch.no_grad():
        words = open_clip_tower.token_embedding(tokens)
        direct = open_clip_tower.encode(tokens)
        swapped = encode_vectors(open_clip_tower, tokens, words)
        other = encode_vectors(open_clip_tower, tokens, words.flip(0))
    assert torch.equal(direct, swapped)
    assert not torch.allclose(direct, other)


def test_learns_through_the_open_clip_tower(open_clip_tower, held_out):
    method = CoOp(
        tower=open_clip_tower, class_names=CLASS_NAMES, class_specific=True, epochs=10,
        learning_rate=0.02,
    )  # fmt: skip
    trace = method.predict(held_out[0]).trace
    assert trace.objective[-1] < trace.objective[0] - 0.05

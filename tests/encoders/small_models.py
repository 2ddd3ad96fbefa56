"""Models small enough for a test, and how they are saved."""

import json

OPEN_CLIP_TEXT = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
OPEN_CLIP_MODELS = {
    "vit": {
        "embed_dim": 24,
        "quick_gelu": True,
        "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "head_width": 32, "patch_size": 8},
        "text_cfg": OPEN_CLIP_TEXT,
    },
    "resnet": {  # RN50's blocks, attention pooling and batch norm, one block a stage
        "embed_dim": 24,
        "vision_cfg": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 16},
        "text_cfg": OPEN_CLIP_TEXT,
    },
}  # fmt: skip
SENTENCES = ("a photo of a cat.", "A Dog!", "the quick brown fox", "", "long words " * 90)



def save_open_clip(open_clip, folder, kind, **preprocessing):
    """A folder for `local-dir:`; the batch norms get statistics that eval mode must use."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    model = open_clip.CLIP(**OPEN_CLIP_MODELS[kind])
    with torch.no_grad():
        if kind == "resnet":
            for _ in range(3):
                model.encode_image(torch.randn(8, 3, 64, 64) * 2 + 1)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    config = {"model_cfg": OPEN_CLIP_MODELS[kind], "preprocess_cfg": preprocessing}
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    return model.eval()

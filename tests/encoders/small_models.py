"""Models small enough for a test, and how they are saved."""

import json

OPEN_CLIP_TEXT = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1}
OPEN_CLIP_MODELS = {
    "vit": {
        "embed_dim": 24,
        "quick_gelu": True,
        "vision_cfg": {
            "image_size": 32,
            "layers": 2,
            "width": 64,
            "head_width": 32,
            "patch_size": 8,
        },
        "text_cfg": OPEN_CLIP_TEXT,
    },
    "resnet": {  # RN50's blocks, attention pooling and batch norm, one block a stage
        "embed_dim": 24,
        "vision_cfg": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 16},
        "text_cfg": OPEN_CLIP_TEXT,
    },
}
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


def as_transformers_clip(model, tokenizer, folder):
    """open_clip's small ViT as a folder of transformers' CLIP, weight by weight."""
    from transformers import CLIPConfig, CLIPModel, CLIPTokenizer

    vocabulary = dict(tokenizer.encoder)
    start, end = vocabulary.pop("<start_of_text>"), vocabulary.pop("<end_of_text>")
    vocabulary |= {"<|startoftext|>": start, "<|endoftext|>": end}
    CLIPTokenizer(vocabulary, list(tokenizer.bpe_ranks)).save_pretrained(folder)
    shared = {"num_attention_heads": 2, "hidden_act": "quick_gelu"}
    text = shared | {
        "num_hidden_layers": 1,
        "vocab_size": 49408,
        "hidden_size": 32,
        "intermediate_size": 128,
        "bos_token_id": start,
        "eos_token_id": end,
    }
    vision = shared | {
        "num_hidden_layers": 2,
        "image_size": 32,
        "patch_size": 8,
        "hidden_size": 64,
        "intermediate_size": 256,
    }
    target = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=24))
    state = {}
    for name, tensor in model.state_dict().items():
        if name.endswith(("in_proj_weight", "in_proj_bias")):
            kind = name.rsplit("_", 1)[1]
            for part, piece in zip("qkv", tensor.chunk(3), strict=True):
                renamed = _renamed(
                    name.replace(f"attn.in_proj_{kind}", f"self_attn.{part}_proj.{kind}")
                )
                state[renamed] = piece
        else:
            projection = name in ("visual.proj", "text_projection")
            state[_renamed(name)] = tensor.T if projection else tensor
    unused, missing = target.load_state_dict(state, strict=False)
    assert not missing, missing
    assert all("position_ids" in name for name in unused), unused
    target.save_pretrained(folder)
    settings = {"size": {"shortest_edge": 32}, "crop_size": 32}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))


NAMES = (
    ("visual.transformer.resblocks", "vision_model.encoder.layers"),
    ("visual.class_embedding", "vision_model.embeddings.class_embedding"),
    ("visual.positional_embedding", "vision_model.embeddings.position_embedding.weight"),
    ("visual.conv1", "vision_model.embeddings.patch_embedding"),
    ("visual.ln_pre", "vision_model.pre_layrnorm"),
    ("visual.ln_post", "vision_model.post_layernorm"),
    ("visual.proj", "visual_projection.weight"),
    ("transformer.resblocks", "text_model.encoder.layers"),
    ("token_embedding", "text_model.embeddings.token_embedding"),
    ("positional_embedding", "text_model.embeddings.position_embedding.weight"),
    ("ln_final", "text_model.final_layer_norm"),
    ("text_projection", "text_projection.weight"),
)
BLOCKS = (
    ("ln_1", "layer_norm1"),
    ("ln_2", "layer_norm2"),
    ("mlp.c_fc", "mlp.fc1"),
    ("mlp.c_proj", "mlp.fc2"),
    (".attn.out_proj", ".self_attn.out_proj"),
)


def _renamed(name):
    for before, after in NAMES:
        if name.startswith(before):
            name = after + name.removeprefix(before)
            break
    for before, after in BLOCKS:
        name = name.replace(before, after)
    return name

"""A tiny image tower in the layout of the hub's ONNX repositories."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE, SIDE, DIMENSION = 4, 6, 5
PREPROCESSOR = {
    "crop_size": {"height": SIZE, "width": SIZE},
    "do_center_crop": True,
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225],
    "resample": 3,
    "size": {"shortest_edge": SIDE},
}
WEIGHTS = np.random.default_rng(5).normal(size=(3, DIMENSION)).astype(np.float32)


def write_image_tower(folder, *, name="onnx/model.onnx", tokens=True, weights=WEIGHTS):
    """Two tokens of each image: its mean color times `weights`, and twice that, plus one."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    nodes = [
        helper.make_node("ReduceMean", ["pixel_values"], ["color"], axes=[2, 3], keepdims=0),
        helper.make_node("MatMul", ["color", "weights"], ["image"]),
        helper.make_node("Unsqueeze", ["image", "one"], ["first"]),
        helper.make_node("Add", ["first", "ones"], ["second"]),
        helper.make_node("Concat", ["first", "second"], ["last_hidden_state"], axis=1),
    ]
    graph = helper.make_graph(
        nodes if tokens else nodes[:2],
        "tower",
        [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ("n", 3, "h", "w"))],
        [
            helper.make_tensor_value_info(
                "last_hidden_state" if tokens else "image", TensorProto.FLOAT, None
            )
        ],
        [
            numpy_helper.from_array(weights, "weights"),
            numpy_helper.from_array(np.array([1], np.int64), "one"),
            numpy_helper.from_array(np.ones(1, np.float32), "ones"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR))
    return folder

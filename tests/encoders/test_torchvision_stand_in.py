"""Real models of open_clip and transformers, where torchvision is broken and where it is absent."""

import subprocess
import sys

import pytest

# As pip leaves it: importing torchvision fails, or there is none.
ABSENT = """
import importlib.util, sys
find_spec = importlib.util.find_spec
class NoTorchvision:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torchvision" and "torchvision" not in sys.modules:
            raise ModuleNotFoundError(name, name="torchvision")
def without(name, package=None):
    return None if name == "torchvision" else find_spec(name, package)
importlib.util.find_spec = without
sys.meta_path.insert(0, NoTorchvision())
"""
BROKEN = """
import sys
from importlib.machinery import ModuleSpec
class Broken:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name == "torchvision" else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        raise OSError("libcudart.so.13: cannot open shared object file")
sys.meta_path.insert(0, Broken())
"""
LOAD = """
import numpy as np, sys
from transduce.encoders import load_encoder
for name in sys.argv[1:]:
    encoder = load_encoder(name)
    size = encoder.preprocessing.size
    assert encoder.embed_images(np.zeros((1, 3, size, size), np.float32)).shape == (1, 24)
    assert encoder.embed_texts(["a cat"]).shape == (1, 24)
assert "torchvision" not in sys.modules
print("loaded")
"""


@pytest.mark.parametrize(("state", "text"), [("absent", ABSENT), ("broken", BROKEN)])
def test_models_load_without_torchvision(vit_folder, clip_folder, state, text):
    names = [f"open_clip:local-dir:{vit_folder}"]
    if state == "absent":  # transformers asks for one that is installed
        names.append(f"hf:{clip_folder}")
    done = subprocess.run(
        [sys.executable, "-c", text + LOAD, *names], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "loaded", done.stderr


def test_one_of_another_torch_is_imported_without_its_operators():
    """As installed here: nothing is patched but what the loader itself does."""
    program = (
        "from transduce.encoders.torchvision_stand_in import import_torchvision\n"
        "assert import_torchvision()\n"
        "from torchvision.transforms import InterpolationMode\n"
        "print(InterpolationMode.BICUBIC.value)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "bicubic", done.stderr

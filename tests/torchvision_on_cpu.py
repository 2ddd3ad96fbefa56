"""torchvision's wheels fail to import beside the CPU build of torch; models here never need it.

Its import registers shape functions for operators that only its compiled part defines
(pytorch issue 157648). transformers and open_clip import torchvision if it is installed.
"""

from importlib.util import find_spec
from typing import Any

import torch


def let_torchvision_import() -> None:
    """Import torchvision, if installed, with the registrations that cannot work left out."""
    if find_spec("torchvision") is None:
        return
    register = torch.library.register_fake

    def register_known(operator: object, *arguments: Any, **options: Any) -> Any:
        if str(operator).startswith("torchvision::"):
            return lambda function: function
        return register(operator, *arguments, **options)

    torch.library.register_fake = register_known
    try:
        import torchvision  # noqa: F401
    finally:
        torch.library.register_fake = register

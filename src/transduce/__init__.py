"""Label a batch of images jointly with a CLIP-like encoder, better than one by one.

Every public name is imported from here, and loaded when it is first used: `import transduce` is
quick and needs neither numba, torch nor scikit-learn. The list of names is `__init__.pyi`.
"""

import lazy_loader

__version__ = "0.1.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

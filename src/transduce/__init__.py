"""Label a batch of images jointly with a CLIP-like encoder, better than one by one.

Every public name is imported from here, and loaded when it is first used: `import transduce` is
quick and needs neither numba, torch nor scikit-learn. The list of names is `__init__.pyi`.
"""

import lazy_loader

from transduce.machine.network import is_offline as _is_offline
from transduce.machine.network import switch_off_telemetry as _switch_off_telemetry
from transduce.machine.network import watch as _watch

__version__ = "0.1.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

_switch_off_telemetry()
if _is_offline():  # TRANSDUCE_OFFLINE: of the user, or of the process that started this one
    _watch()

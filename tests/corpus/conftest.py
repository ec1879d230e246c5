"""The texts of this room lie beside its tests; under importlib mode pytest puts no folder on the path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

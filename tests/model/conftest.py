"""What the tests of this room share lies beside them; under importlib mode pytest puts no folder on the path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

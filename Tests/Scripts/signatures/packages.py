# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The packages installed by the script `install`."""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[3] / ".build" / "signatures" / "python"


def use_packages():
    sys.path.insert(0, str(FOLDER))

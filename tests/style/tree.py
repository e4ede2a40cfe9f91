# SPDX-License-Identifier: Apache-2.0
"""The files of the project, as the checks of style see them."""

import os
import subprocess


def files(folder="."):
    """Paths below folder, from the current folder: what git tracks or would add; without git all but builds and hidden ones."""
    try:
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", folder], capture_output=True, text=True)
        if listed.returncode == 0 and listed.stdout:
            return [path for path in listed.stdout.splitlines() if os.path.isfile(path)]
    except FileNotFoundError:
        pass
    found = []
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "build")) and name != "__pycache__"]
        found += [os.path.normpath(os.path.join(at, name)) for name in names if not name.startswith(".")]
    return sorted(found)

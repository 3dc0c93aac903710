"""Models that come with the package, by name."""

import difflib
import json
from pathlib import Path

from glassformer.errors import UserError

FOLDER = Path(__file__).parent.parent / "models"


def built_in_models() -> dict[str, str]:
    """Name and one line about each."""
    found = {}
    for settings in sorted(FOLDER.glob("*/settings.json")):
        about = json.loads(settings.read_text(encoding="utf-8"))["about"]
        found[settings.parent.name] = str(about.get("title", ""))
    return found


def find_model(model: str | Path) -> Path:
    """A folder as it is, or a built-in model by name."""
    path = Path(model)
    if path.exists():
        return path
    names = built_in_models()
    if str(model) in names:
        return FOLDER / str(model)
    near = difflib.get_close_matches(str(model), names, n=1)
    hint = f"Did you mean {near[0]}?" if near else "See `glassformer models` for what is built in."
    raise UserError(f"There is no model {str(model)!r}, neither a folder nor a built-in one.", hint)

"""The base of every settings model: frozen, nothing unknown let in, no silent conversion of types."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """One owner's settings. Each field is typed and has ``Field(description=...)`` with its unit and one sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

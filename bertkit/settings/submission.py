"""The settings of ``bertkit predict glue``: where its runs and data lie, and the archive that it writes."""

from __future__ import annotations

from pydantic import Field

from bertkit.fields import Settings
from bertkit.settings.parts import BatchSettings
from bertkit.training.device import DeviceSettings


class SubmissionData(Settings):
    """Whose test parts are predicted."""

    folder: str | None = Field(None, description="A folder with GLUE's own (CoLA, SST-2, MNLI, …); unset: the hub's data.")


class SubmissionSettings(Settings):
    """``bertkit predict glue``."""

    submission: str = Field(description="The zip file for GLUE's server.")
    overwrite: bool = Field(False, description="Replace that file also where it is no submission.")
    runs: str = Field("runs", description="The folder whose newest finished run of each task is taken.")
    data: SubmissionData = Field(default_factory=SubmissionData)
    device: DeviceSettings = Field(default_factory=DeviceSettings)
    batch: BatchSettings = Field(default_factory=BatchSettings)

"""Decides when the plugin is awake.

The plugin has nothing to do for a program without SFrame.  So it sleeps until GDB has a file for which it is of use.  A
sleeping plugin has commands, settings and a handler of new files, but no unwinder and no other handlers, and most of
its modules are not imported.
"""

from __future__ import annotations

from gdb_plugin.lifecycle.files_of_use import FilesOfUse
from sframe_unwind import TYPE_CHECKING
from sframe_unwind.debugger.modes import OFF

if TYPE_CHECKING:
    from gdb_plugin.lifecycle.engine import Engine
    from sframe_unwind.debugger.settings import Settings


class Plugin:
    """The user's settings, and whether the plugin is awake."""

    def __init__(self) -> None:
        self._settings: Settings | None = None
        """``None``: the user has chosen none."""
        self._engine: Engine | None = None
        self._is_awake = False
        self._files = FilesOfUse(self._files_changed)

    def start(self) -> None:
        """Look at GDB's files, and at each new one from now on."""
        self._files.watch(True)
        self._update(by_user=True)

    @property
    def settings(self) -> Settings:
        """The user's settings."""
        if self._settings is None:
            from sframe_unwind.debugger.settings import Settings

            self._settings = Settings()
        return self._settings

    def choose(self, settings: Settings) -> None:
        """Apply the user's settings, also to frames that are already unwound."""
        self._settings = settings
        self._files.watch(settings.mode != OFF)
        self._update(by_user=True)
        if self._engine is not None:
            self._engine.apply(settings)

    @property
    def is_awake(self) -> bool:
        """Whether frames are unwound from SFrame where there is any."""
        return self._is_awake

    def engine(self) -> Engine:
        """Return the part of the plugin that unwinds, which a command can use while the plugin sleeps."""
        if self._engine is None:
            from gdb_plugin.lifecycle.engine import Engine

            self._engine = Engine(self.settings, self._files_changed)
        return self._engine

    def _files_changed(self) -> None:
        """Wake up if GDB has the first file of use, and sleep if the last one is gone."""
        self._update(by_user=False)

    def _update(self, by_user: bool) -> None:
        """Wake up or go to sleep.

        :param by_user: a command of the user's is the reason; otherwise GDB may be in the middle of a command, and the
            process of running.
        """
        chosen = self._settings
        concerns_all = chosen is not None and chosen.concerns_all
        wanted = (chosen is None or chosen.mode != OFF) and (concerns_all or self._files.are_there())
        if wanted != self._is_awake:
            self._is_awake = wanted
            self.engine().wake(wanted, by_user)

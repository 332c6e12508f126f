"""What a command says of the towers of a model that sees or hears."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TowerUse:
    """The modalities that no request may bring (their towers stay out), and how TP treats the towers.

    `whole` asks for whole towers on every rank; those that cannot be are split. `profiled` is False where the encoder
    is not run before memory is measured.
    """

    left_out: frozenset[str] = frozenset()
    everything_left_out: bool = False
    whole: bool = False
    profiled: bool = True


EVERY_TOWER = TowerUse()

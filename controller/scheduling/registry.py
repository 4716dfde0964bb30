"""The policies by name. A new policy is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable

from controller.model.errors import BadInput
from controller.scheduling.aalo import Aalo
from controller.scheduling.cassini import Cassini
from controller.scheduling.crux import Crux
from controller.scheduling.echelon import Echelon
from controller.scheduling.echelon_edf import EchelonEdf
from controller.scheduling.echelon_paper import EchelonPaper
from controller.scheduling.edf import Edf
from controller.scheduling.fair import Fair
from controller.scheduling.fifo import Fifo
from controller.scheduling.policy import Policy
from controller.scheduling.sincronia import Sincronia
from controller.scheduling.srpt import Srpt
from controller.scheduling.varys import Varys

POLICIES: dict[str, Callable[[], Policy]] = {
    "fair": Fair,
    "fifo": Fifo,
    "edf": Edf,
    "srpt": Srpt,
    "varys": Varys,
    "aalo": Aalo,
    "sincronia": Sincronia,
    "crux": Crux,
    "cassini": Cassini,
    "echelon": Echelon,
    "echelon-edf": EchelonEdf,
    "echelon-paper": EchelonPaper,
}


def policy(name: str) -> Policy:
    """A fresh policy. Raises BadInput that lists the names there are."""
    if name not in POLICIES:
        raise BadInput(f"no policy is called {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name]()

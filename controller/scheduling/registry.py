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
from controller.scheduling.echelon_search import read_spelled
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


SEARCH = "echelon-search"


def policy(name: str) -> Policy:
    """A fresh policy. Raises BadInput that lists the names there are.

    `echelon-search` alone is no policy yet: `echelon_search.search` makes one by playing a
    workload, and `echelon-search:{...}`, an order it has spelled, is read back here.
    """
    kind, _, order = name.partition(":")
    if kind == SEARCH and order:
        return read_spelled(order, policy)
    if kind == SEARCH:
        raise BadInput(f"{SEARCH} finds its order by playing a workload: hand it one to play")
    if name not in POLICIES:
        raise BadInput(f"no policy is called {name!r}; there are {', '.join(names())}")
    return POLICIES[name]()


def names() -> list[str]:
    """All names a user may give, the search included."""
    return [*POLICIES, SEARCH]

r"""The audit of a Q-function in hand: is it the value of any policy on this data, of which, and how far off is it?

>>> import ipe.audit
>>> batch = {"state": [0, 0, 1, 1], "action": [0, 1, 0, 1], "reward": [1.0, -1.0, 2.0, 0.0],
...          "next_state": [0, 1, 1, 0], "terminated": [False] * 4}
>>> ipe.audit.audit(batch, q=[[16.3, 17.0], [20.0, 15.3]], gamma=0.9, deterministic=True).achievable
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipe.audit.auditing import audit
    from ipe.audit.contents import audit_contents
    from ipe.audit.decomposition import Decomposition
    from ipe.audit.figure import draw_audit
    from ipe.audit.fitting import Fit
    from ipe.audit.minari_data import minari_transitions
    from ipe.audit.result import Audit, Exploration, Parts, SampleAudit, TableAudit, WorstState, WorstTransition
    from ipe.audit.runs import audit_run
    from ipe.audit.sb3 import audit_sb3
    from ipe.audit.transitions import Transitions, load_transitions, make_transitions, save_transitions

__all__ = [
    "Audit",
    "Decomposition",
    "Exploration",
    "Fit",
    "Parts",
    "SampleAudit",
    "TableAudit",
    "Transitions",
    "WorstState",
    "WorstTransition",
    "audit",
    "audit_contents",
    "audit_run",
    "audit_sb3",
    "draw_audit",
    "load_transitions",
    "make_transitions",
    "minari_transitions",
    "save_transitions",
]

# Imported when first asked for: JAX, matplotlib and torch take seconds.
_HOMES = {
    "Audit": "result",
    "Decomposition": "decomposition",
    "Exploration": "result",
    "Fit": "fitting",
    "Parts": "result",
    "SampleAudit": "result",
    "TableAudit": "result",
    "Transitions": "transitions",
    "WorstState": "result",
    "WorstTransition": "result",
    "audit": "auditing",
    "audit_contents": "contents",
    "audit_run": "runs",
    "audit_sb3": "sb3",
    "draw_audit": "figure",
    "load_transitions": "transitions",
    "make_transitions": "transitions",
    "minari_transitions": "minari_data",
    "save_transitions": "transitions",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"ipe.audit.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'ipe.audit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

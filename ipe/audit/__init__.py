r"""The audit of a Q-function in hand: is it the value of any policy on this data, of which, and how far off is it?

>>> import ipe.audit
>>> batch = {"state": [0, 0, 1, 1], "action": [0, 1, 0, 1], "reward": [1.0, -1.0, 2.0, 0.0],
...          "next_state": [0, 1, 1, 0], "terminated": [False] * 4}
>>> ipe.audit.audit(batch, q=[[16.3, 17.0], [20.0, 15.3]], gamma=0.9, deterministic=True).achievable
True
"""

from typing import TYPE_CHECKING

from ipe.base.lazy import load_when_asked

if TYPE_CHECKING:
    from ipe.audit.auditing import audit
    from ipe.audit.decomposition import Decomposition
    from ipe.audit.figure import draw_audit
    from ipe.audit.fitting import Fit
    from ipe.audit.result import (
        Audit,
        Exploration,
        Parts,
        SampleAudit,
        TableAudit,
        WorstState,
        WorstTransition,
        audit_contents,
    )
    from ipe.audit.runs import audit_run
    from ipe.audit.sb3 import audit_sb3
    from ipe.audit.support import Support
    from ipe.deep.transitions import (
        Transitions,
        load_transitions,
        make_transitions,
        minari_transitions,
        save_transitions,
    )
else:
    __getattr__, __dir__ = load_when_asked(__name__)

__all__ = [
    "Audit",
    "Decomposition",
    "Exploration",
    "Fit",
    "Parts",
    "SampleAudit",
    "Support",
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

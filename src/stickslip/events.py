"""What happened in a run, and when."""

KINDS = ("", "impact", "lift-off", "stick", "slip", "reversal", "accumulation", "force jump", "event", "printed steps")
_, IMPACT, LIFT_OFF, STICK, SLIP, REVERSAL, ACCUMULATION, FORCE_JUMP, EVENT, PRINTED = range(len(KINDS))

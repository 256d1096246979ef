"""The flight recorder of the JDK, as executors are started with it."""

from __future__ import annotations

from nexmark.cluster.recordings import RECORDING
from nexmark.flames.recording import STACK_DEPTH

#: A recording is at most so large; what is older goes.
_LARGEST = "128m"

#: The options of a JVM that records. All paths are relative to the executor's own directory, so
#: nothing in them has to be quoted, and what is left there goes with the cluster. Debug information
#: at every instruction: else samples would pile up at the few places where the JVM can stop.
RECORDER = (
    f"-XX:FlightRecorderOptions=stackdepth={STACK_DEPTH},repository=.",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:+DebugNonSafepoints",
    "-XX:StartFlightRecording=name=nexmark,settings=profile,disk=true,dumponexit=true,"
    f"maxsize={_LARGEST},filename={RECORDING}",
)

__all__ = ["RECORDER"]

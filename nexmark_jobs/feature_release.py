"""The feature release of a Spark version, by which engines differ in what they have."""


def feature_release(spark_version: str) -> tuple[int, ...]:
    """Return the first two numbers, e.g. (4, 3) of `4.3.0` and of `4.3.0-SNAPSHOT`."""
    return tuple(int(part) for part in spark_version.split(".")[:2])

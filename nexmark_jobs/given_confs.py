"""Which Spark confs somebody gave an application, out of all that it ran with.

In place of a secret, and of all that secures a Kafka connection, is its fingerprint.
"""

import re
from collections.abc import Mapping

from nexmark_jobs.redaction import SPARK_REGEX, fingerprint, redacted

#: A Spark conf with this prefix is an option of Kafka's clients, such as what secures a connection.
KAFKA_CONFS = "spark.nexmark.kafka."

_OF_THIS_RUN = re.compile(
    r"spark\.app\..*|spark\.driver\.(host|port)|spark\.executor\.id|spark\.sql\.warehouse\.dir"
    r"|spark\.repl\..*|spark\.submit\..*|spark\.authenticate\.secret.*|spark\.nexmark\.label"
)
_OF_EVERY_RUN = {
    ("spark.rdd.compress", "True"),
    ("spark.serializer.objectStreamReset", "100"),
    ("spark.sql.artifact.isolation.enabled", "false"),
    ("spark.redaction.regex", SPARK_REGEX),
    ("spark.hadoop.fs.s3a.vectored.read.min.seek.size", "128K"),  # Spark 4.1
    ("spark.hadoop.fs.s3a.vectored.read.max.merged.size", "2M"),
}
#: The options that Spark gives every JVM, to which it adds what somebody gave.
_MODULES = re.compile(
    r"-Djava\.net\.preferIPv6Addresses=false|-XX:\+IgnoreUnrecognizedVMOptions"
    r"|--(add-modules|add-opens|add-exports|enable-native-access)=\S+"
    r"|--sun-misc-unsafe-memory-access=allow|-Djdk\.reflect\.useDirectMethodHandle=false"
    r"|-Dio\.netty\.(tryReflectionSetAccessible|allocator\.type"
    r"|handler\.ssl\.defaultEndpointVerificationAlgorithm)=\S+"
)


def given_confs(confs: Mapping[str, str], key: bytes) -> dict[str, str]:
    """Return the confs that somebody gave, without those that Spark sets for every application.

    Args:
        confs: all confs of a Spark context.
        key: the key of the fingerprints.
    """
    of_jvms = {name: value for name, value in confs.items() if name.endswith("JavaOptions")}
    ours = {name: " ".join(_MODULES.sub("", value).split()) for name, value in of_jvms.items()}
    chosen = {
        name: value
        for name, value in sorted({**confs, **ours}.items())
        if value and not _OF_THIS_RUN.fullmatch(name) and (name, value) not in _OF_EVERY_RUN
    }
    secured = {
        name: fingerprint(value, key) for name, value in chosen.items() if KAFKA_CONFS in name
    }
    return redacted(chosen, key) | secured

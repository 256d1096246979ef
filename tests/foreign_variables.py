"""The variables of a user's shell that change a JVM, a Spark or a Python, each with a mark."""

from __future__ import annotations

MARK = "of-a-stranger"
FOREIGN = {
    **dict.fromkeys(("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"), f"-Dx={MARK}"),
    **dict.fromkeys(("HADOOP_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR"), f"/etc/{MARK}"),
    **dict.fromkeys(("SPARK_DIST_CLASSPATH", "SPARK_CONF_DIR", "CLASSPATH"), f"/opt/{MARK}"),
    **dict.fromkeys(("SPARK_DAEMON_JAVA_OPTS", "SPARK_SUBMIT_OPTS"), f"-Dx={MARK}"),
    **dict.fromkeys(("SPARK_MASTER_OPTS", "SPARK_WORKER_OPTS", "SPARK_JAVA_OPTS"), f"-Dx={MARK}"),
    **dict.fromkeys(("SPARK_EXECUTOR_OPTS", "SPARK_LAUNCHER_OPTS"), f"-Dx={MARK}"),
    **dict.fromkeys(("PYTHONPATH", "PYTHONSTARTUP", "PYSPARK_SUBMIT_ARGS"), f"/home/{MARK}"),
    "KAFKA_OPTS": f"-Dx={MARK}",
    "PYTHONINSPECTED": MARK,  # nobody knows it: whatever is not let in stays out
}

"""JVM options for the Spark of tests, whose runs are short: start-up and collection cost least."""

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

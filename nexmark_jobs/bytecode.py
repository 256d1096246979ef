"""Imported before PySpark, it lets a driver start from PySpark's bytecode.

spark-submit puts `pyspark.zip` on the path, and Python keeps no bytecode of an archive: each driver
compiles PySpark again, which is 1.3 of its first 1.6 seconds of processor time (Spark 4.3.0,
`import pyspark.sql.functions`). So the directory of the same PySpark comes before the archive, if
the build has one.
"""

import os
import sys
from pathlib import Path

if home := os.environ.get("SPARK_HOME"):
    places = [Path(home, "python"), Path(home).parent]  # of a release, of a wheel
    found = [str(x) for x in places if (x / "pyspark" / "__init__.py").is_file()]
    sys.path[1:1] = found[:1]

"""How long does Spark take for a computed string? Run it with two releases, and compare.

    pip install pyspark==3.5.9 && python computed_strings.py
    pip install pyspark==4.3.0 && python computed_strings.py

A row has two bigints and 0 to 4 strings, each a slice of a constant. The rows go to the noop sink
as they are (`plain`), with a hash of all columns (`hashed`), if no string is small (`filter`), or
as one concatenated string (`concat`). One thread, ANSI mode off in all releases.
Each line has the ns for a row: median and range of seven runs, after four that warm up. A run has
5 million rows; `python computed_strings.py 1000` has 1,000.
"""

import statistics
import sys
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
WARM_UP, RUNS = 4, 7
CONSTANT = "cast('" + "abcdefghijklmnopqrst" * 20 + "' as binary)"


def text(number: int) -> str:
    """Return a column with 20 to 83 characters of the constant."""
    draw = f"xxhash64(id + {number})"
    start, length = f"cast({draw} & 127 as int) + 1", f"cast({draw} & 63 as int) + 20"
    return f"cast(substring({CONSTANT}, {start}, {length}) as string) s{number}"


def show(what: str, frame: DataFrame) -> None:
    """Print how long the rows of a frame take."""
    times = []
    for _ in range(WARM_UP + RUNS):
        begin = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        times.append(1e9 * (time.perf_counter() - begin) / ROWS)
    middle, low, high = statistics.median(times[WARM_UP:]), *sorted(times[WARM_UP:])[:: RUNS - 1]
    print(f"{what:<22} {middle:7.1f} ns ({low:.1f} to {high:.1f})", flush=True)


builder = SparkSession.builder.master("local[1]").config("spark.driver.memory", "3g")
builder = builder.config("spark.ui.enabled", "false").config("spark.sql.ansi.enabled", "false")
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
print(f"Spark {spark.version}")
for count in (0, 1, 2, 4):
    strings, kind = [f"s{number}" for number in range(count)], f"{count} string(s)"
    rows = spark.range(0, ROWS, 1, 1).selectExpr("id", "id * 3 a", *map(text, range(count)))
    show(f"{kind}, plain", rows)
    if count:
        show(f"{kind}, hashed", rows.withColumn("h", F.xxhash64(*rows.columns)))
        show(f"{kind}, filter", rows.where(" and ".join(f"{s} > 'a'" for s in strings)))
        show(f"{kind}, concat", rows.select("id", F.concat(*strings, F.lit("x"))))
spark.stop()

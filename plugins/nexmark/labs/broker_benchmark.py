"""Benchmark the brokers themselves: ten tests with Kafka's own tools and one set of confs.

The tests are from Jay Kreps, "Benchmarking Apache Kafka: 2 million writes per second (on three
cheap machines)", 2014: three brokers, 6 partitions, records of 100 bytes. Rates depend on the
machine, ratios of two rates depend less on it; so they are printed beside the article's ratios.
"""

import contextlib
import statistics
import uuid
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, replace
from functools import partial

from nexmark.kafka import KafkaError
from nexmark.kafka.topics import KafkaCluster
from nexmark.labs.kafka_tools import Latencies, Throughput, Tools, children_cpu_s
from nexmark.model import Say, Spread

PARTITIONS = 6
RECORD_BYTES = 100
SIZES = (10, 100, 1_000, 10_000, 100_000)
"""Bytes of a record in the test of sizes."""

Rate = Callable[[], Throughput]
Client = contextlib.AbstractContextManager[Rate]
"""A context in which a program runs; it yields a function that waits for the program's end and
returns the program's rate."""

_PARTS = 5
_MIN_RECORDS = 200
_LATENCY_RECORDS = 3_000


@dataclass(frozen=True)
class BrokerTest:
    """A test of the article."""

    id: str
    what: str
    text: float | None  # records per second in the article; None where it has no figure
    replicas: int = 1


TESTS = {
    test.id: test
    for test in (
        BrokerTest("K1", "1 producer, no replication", 821_557),
        BrokerTest("K2", "1 producer, 3 replicas, acks=1", 786_980, 3),
        BrokerTest("K3", "1 producer, 3 replicas, acks=all", 421_823, 3),
        BrokerTest("K4", "3 producers, 3 replicas, acks=1", 2_024_032, 3),
        BrokerTest("K5", "1 producer, the last fifth of a growing topic", None, 3),
        BrokerTest("K6", "1 consumer", 940_521, 3),
        BrokerTest("K7", "3 consumers", 2_615_968, 3),
        BrokerTest("K8", "1 consumer beside 1 producer", 795_064, 3),
        BrokerTest("K9", "1 producer, records of another size", None),
        BrokerTest("K10", "end to end, 3 replicas, acks=all", None, 3),
    )
}


@dataclass(frozen=True)
class RateRatio:
    """The rate of one test divided by the rate of another test."""

    over: str  # the test whose rate is divided
    under: str  # the test by whose rate it is divided
    text: float  # the ratio in the article
    meaning: str
    shared: str = ""  # why brokers and clients on one machine cannot show it


_FOLLOWERS = "followers and clients share the cores of this machine: not to be compared"
RATIOS = (
    RateRatio("K2", "K1", 0.958, "what replication costs", _FOLLOWERS),
    RateRatio("K3", "K1", 0.513, "what waiting for all replicas costs", _FOLLOWERS),
    RateRatio("K4", "K2", 2.57, "three producers by one", _FOLLOWERS),
    RateRatio("K5", "K5 first", 1.0, "the last fifth by the first: stored data slows nothing"),
    RateRatio("K7", "K6", 2.78, "three consumers by one", _FOLLOWERS),
    RateRatio("K8", "K2", 1.01, "reading while writing by writing alone", _FOLLOWERS),
)


@dataclass(frozen=True)
class BenchRow:
    """The measured figures of a test; a test of latencies has no rates."""

    id: str  # of K9 with the size; `K5 first` is the first fifth
    records: Spread | None  # per second
    megabytes: float | None  # per second, of 2^20 bytes
    clients_cpu_s: float  # processor time, the median of a run
    brokers_cpu_s: float | None  # None where the brokers are on other machines
    latencies: Latencies | None = None


@dataclass(frozen=True)
class Bench:
    """The benchmark of a Kafka cluster by Kafka's own tools."""

    kafka: KafkaCluster
    tools: Tools
    brokers_cpu_s: Callable[[], float | None]  # the processor time (s) that they have used so far
    records: int  # how many records a run writes, without the warm-up
    runs: int  # how many runs of each test are measured; one more comes before them
    say: Say

    def run(self, tests: list[str]) -> list[BenchRow]:
        """Run the tests in the article's order; KafkaError for too few brokers."""
        wanted = [test for name, test in TESTS.items() if name in tests]
        brokers = len(self.kafka.brokers())
        for test in wanted:
            if test.replicas > brokers:
                needs = f"{test.id} needs {test.replicas} brokers, and there are {brokers}"
                remedy = "leave it out with --tests, or take a cluster that has them"
                raise KafkaError(f"kafka: {needs}; {remedy}")
        return [row for test in wanted for row in self._rows(test)]

    def _rows(self, test: BrokerTest) -> list[BenchRow]:
        if test.id == "K9":
            return [self._sized(size) for size in SIZES]
        if test.id == "K5":
            return self._growing(test)
        if test.id == "K10":
            return [self._end_to_end(test)]
        return [self._measured(test.id, partial(self._rate, test))]

    def _rate(self, test: BrokerTest) -> Throughput:
        acks = "all" if test.id == "K3" else "1"
        clients = 3 if test.id in ("K4", "K7") else 1
        with self._topic(test.replicas) as topic:
            if test.id in ("K6", "K7"):
                with self.tools.producer(topic, self.records, RECORD_BYTES, "1") as filled:
                    filled()
                return self._together(partial(self.tools.consumer, topic, self.records), clients)
            if test.id == "K8":
                return self._beside(topic)
            return self._together(partial(self._producer, topic, acks), clients)

    def _producer(self, topic: str, acks: str) -> Client:
        """Return a producer that warms up with as many records as are measured."""
        warm = self.records
        return self.tools.producer(topic, warm + self.records, RECORD_BYTES, acks, warm_up=warm)

    def _together(self, client: Callable[[], Client], number: int) -> Throughput:
        """Return the sum of the rates of clients that run at the same time."""
        with contextlib.ExitStack() as stack:
            running = [stack.enter_context(client()) for _ in range(number)]
            rates = [rate() for rate in running]
        records, megabytes = (sum(column) for column in zip(*map(astuple, rates), strict=True))
        return Throughput(records, megabytes)

    def _beside(self, topic: str) -> Throughput:
        """Return the rate of a consumer while a producer writes to the same topic."""
        with self._producer(topic, "1") as written:
            with self.tools.consumer(topic, self.records) as read:
                rate = read()
            written()
        return rate

    def _growing(self, test: BrokerTest) -> list[BenchRow]:
        """Measure the first and the last fifth of what is written to one topic."""
        with self._topic(test.replicas) as topic:
            run = partial(self._together, partial(self._producer, topic, "1"), 1)
            numbers = range(1, _PARTS + 1)
            parts = [self._measured(f"K5 part {number}", run, once=True) for number in numbers]
        return [replace(parts[0], id="K5 first"), replace(parts[-1], id="K5")]

    def _sized(self, size: int) -> BenchRow:
        """Measure records of `size` bytes; there are fewer of them where they are larger."""
        records = max(_MIN_RECORDS, self.records * RECORD_BYTES // size // 2)

        def written() -> Throughput:
            run = partial(self.tools.producer, size=size, acks="1", warm_up=records)
            with self._topic(1) as topic, run(topic, 2 * records) as rate:
                return rate()

        return self._measured(f"K9 {size:,} B", written)

    def _end_to_end(self, test: BrokerTest) -> BenchRow:
        runs: list[Latencies] = []

        def measured() -> Throughput:
            with self._topic(test.replicas) as topic:
                runs.append(self.tools.latencies(topic, _LATENCY_RECORDS, RECORD_BYTES, "all"))
            return Throughput(0, 0)

        row = self._measured(test.id, measured)
        each = zip(*map(astuple, runs[1:]), strict=True)
        middle = Latencies(*(round(statistics.median(percentile)) for percentile in each))
        return replace(row, records=None, megabytes=None, latencies=middle)

    def _measured(self, name: str, run: Rate, *, once: bool = False) -> BenchRow:
        """Run a test several times and return its medians.

        The first run is cold and does not count, unless the test can only run `once`.
        """
        what = TESTS[name.split()[0]].what
        measured = []
        for number in range(1 if once else self.runs + 1):
            self.say(f"{name}: {what}{'' if once or number else ', not counted'}")
            clients, brokers = children_cpu_s(), self.brokers_cpu_s() or 0.0
            rate = run()
            brokers = (self.brokers_cpu_s() or 0.0) - brokers
            measured.append((rate, children_cpu_s() - clients, brokers))
        rates, of_clients, of_brokers = zip(*measured[0 if once else 1 :], strict=True)
        return BenchRow(
            name,
            Spread.of([rate.records for rate in rates]),
            statistics.median(rate.megabytes for rate in rates),
            statistics.median(of_clients),
            None if self.brokers_cpu_s() is None else statistics.median(of_brokers),
        )

    @contextlib.contextmanager
    def _topic(self, replicas: int) -> Iterator[str]:
        """Create a topic; it is removed after its test."""
        name = f"nexmark-bench-{uuid.uuid4().hex[:10]}"
        self.kafka.create(name, PARTITIONS, replicas=replicas)
        try:
            yield name
        finally:
            self.kafka.delete(name)


def ratio(tests: RateRatio, rows: list[BenchRow]) -> float | None:
    """Return the measured ratio of two tests; None where one of them did not run."""
    rates = {row.id: row.records.median for row in rows if row.records is not None}
    if tests.over not in rates or tests.under not in rates:
        return None
    return rates[tests.over] / rates[tests.under]

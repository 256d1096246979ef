"""Generate persons."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.generator.draws import (
    below,
    draw,
    filler,
    high,
    low,
    one_of,
    random_string,
    text_constant,
)
from nexmark_jobs.generator.timeline import events_of
from nexmark_jobs.generator_config import GeneratorConfig

FIRST_NAMES = (
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
)
LAST_NAMES = (
    "Shultz",
    "Abrams",
    "Spencer",
    "White",
    "Bartels",
    "Walton",
    "Smith",
    "Jones",
    "Noris",
)
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")

_FIXED_SIZE = 8
_CARD_NUMBERS = 10**16


def _one_of(items: tuple[str, ...], bits32: Column) -> Column:
    return one_of(items, below(bits32, len(items)))


def _credit_card(bits: Column) -> Column:
    """Return a card number: four groups of four digits."""
    digits = F.shiftrightunsigned(bits, 1) % _CARD_NUMBERS + _CARD_NUMBERS
    text = digits.cast("string")  # the leading 1 keeps the zeros
    return F.concat_ws(" ", *[F.substring(text, start, 4) for start in (2, 6, 10, 14)])


def persons(numbers: DataFrame, config: GeneratorConfig, end: int | None = None) -> DataFrame:
    """Return the persons among `numbers` (a frame with the bigint column `n`, streaming or not).

    Columns: n, id (bigint), name, emailAddress, creditCard, city, state (string), dateTime
    (timestamp), extra (string).
    """
    n, seed = F.col("n"), config.seed
    text = text_constant(seed)
    events = events_of("person", numbers, config, end)
    name_bits = draw(seed, "person.name", n)
    user = random_string(draw(seed, "person.email.user", n), text, 7)
    host = random_string(draw(seed, "person.email.host", n), text, 5)
    email = F.concat(user, F.lit("@"), host, F.lit(".com"))
    first, last = _one_of(FIRST_NAMES, high(name_bits)), _one_of(LAST_NAMES, low(name_bits))
    number = F.col("cycle") * config.person_proportion + F.col("offset") + config.first_person_id
    drawn = events.select(
        "n",
        "date_time_ms",
        number.alias("id"),
        F.concat(first, F.lit(" "), last).alias("name"),
        email.alias("emailAddress"),
        _credit_card(draw(seed, "person.creditCard", n)).alias("creditCard"),
        _one_of(CITIES, high(draw(seed, "person.city", n))).alias("city"),
        _one_of(STATES, high(draw(seed, "person.state", n))).alias("state"),
    )
    texts = ("name", "emailAddress", "creditCard", "city", "state")
    size = sum((F.octet_length(text) for text in texts), F.lit(_FIXED_SIZE))
    time = F.timestamp_millis(F.col("date_time_ms")).alias("dateTime")
    extra = filler(draw(seed, "person.extra", n), seed, size, config.avg_person_byte_size)
    return drawn.select("n", "id", *texts, time, extra.alias("extra"))

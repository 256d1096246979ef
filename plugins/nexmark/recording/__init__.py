"""From the files of a night to the results database, and to the flame graphs of what changed.

The run directory keeps all that is recorded. So a night whose database could not be written loses
nothing: the task `judge` first records what is lacking, and where that fails, too, it says how a
person does it later (`nexmark record`).

    repetitions          measure a repetition, and compare its rows with the right ones
    night_records        record a night, its queries, and what the database lacks of them
    flight_recordings    draw flame graphs of the repetitions that had a flight recorder
"""

"""Read the files of a night, write the results database, and draw flame graphs of what changed.

The run directory keeps all files from which a night is recorded. So a night whose database could
not be written loses nothing: the task `judge` first records what the database lacks. If that fails,
too, the task prints the command that does it later (`nexmark record`).

    repetitions          measure a repetition, and compare its rows with the right ones
    night_records        record a night, its queries, and what the database lacks of them
    pair_progress        print after each pair where the interval of its query stands
    flight_recordings    draw flame graphs of the repetitions that had a flight recorder
"""

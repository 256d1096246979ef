"""The CPU samples of a night: the samplers beside each query, and what their samples say.

    samplers         start and end the samplers of this machine and of the hosts; run the canary
    group_samples    read the samples of a query, and find executors and hosts that had trouble
    second_try       measure a repetition once more that had such trouble

The programs that run on hosts are in `nexmark_jobs/host`; `nexmark.cluster` starts them there, and
`nexmark.measure` computes figures from what they write.
"""

"""The CPU samples of a night: the samplers that run beside each query, and what their samples say.

    sampler_processes    start and end the samplers of this machine and of the hosts; run the canary
    group_samples        read the samples of a query; find executors and hosts that had trouble
    second_try           measure a repetition once more if there was such trouble

`nexmark_jobs` has the programs that run on hosts; `nexmark.cluster` starts them there, and
`nexmark.measure` computes figures from what they write.
"""

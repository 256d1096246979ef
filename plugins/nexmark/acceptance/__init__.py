"""The accepted builds: a night is compared with them; and which of its red verdicts are known.

A person accepts a query of a run (the DAG or `nexmark accept`). That does two things:

1. *The baseline moves.* From then on the query is compared with the build (in mode bounds: the run)
   that was accepted, and anything worse is red again, by its own size. No acceptance may hide that:
   the size that was accepted was of another baseline (`accepted_baselines`).
2. *The red verdict itself is known.* Where a query is still compared with what it was compared with
   when it was accepted (the same night judged again, a night or sign-off `against` that build), the
   accepted build is covered whatever is measured of it, and another build up to the accepted size.
   Against any third baseline the sizes do not compare: only the accepted build is covered there
   (`known_verdicts`).

Accepting a green night sets a baseline and excuses nothing; neither does a run of another input.
When the acceptance expires or is withdrawn, both end. Nothing covers a night that tried a setting
(`candidate_conf`): it is of no build that was accepted. The suite as a whole cannot be accepted: it
follows the baselines of its queries.

What a person may write into an acceptance is checked in `nexmark.store.accepting`; what an
acceptance covers is decided by numbers alone in `nexmark.verdict.acks`.
"""

"""Watch mode: what a save affects is built, explained, verified and timed, for as long as it runs.

    notices -> gathering (a burst is over) -> digests (what changed) -> decide -> build, steps -> events

Events of the file system only wake it up. What is stale, the build decides by content, so a lost or doubled
event costs a moment and never an answer.
"""

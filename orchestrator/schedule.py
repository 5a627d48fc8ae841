"""Runs steps that need one another, several at a time, those on the longest way to the end first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Answer = TypeVar("Answer")


def critical_seconds(needs: Mapping[str, Sequence[str]], own: Mapping[str, float]) -> dict[str, float]:
    """For each step the seconds from its start to the end of the last step that waits for it."""
    users: dict[str, list[str]] = {name: [] for name in needs}
    for name, needed in needs.items():
        for other in needed:
            users[other].append(name)
    found: dict[str, float] = {}

    def visit(name: str) -> float:
        if name not in found:
            found[name] = own[name] + max(map(visit, users[name]), default=0.0)
        return found[name]

    for name in needs:
        visit(name)
    return found


def run_steps(
    needs: Mapping[str, Sequence[str]],
    own_seconds: Mapping[str, float],
    decide: Callable[[str], Answer | None],
    work: Callable[[str], Answer],
    jobs: int,
    stop: Callable[[], None],
) -> dict[str, Answer]:
    """An answer for each step of ``needs`` (step to those that come before it).

    ``decide`` is asked in this thread once all needed steps have an answer; where it has none, ``work`` finds
    it in one of ``jobs`` threads. When anything is raised, ``stop`` must end what is running in them.
    """
    rank = critical_seconds(needs, own_seconds)
    waiting = {name: set(needed) for name, needed in needs.items()}
    answers: dict[str, Answer] = {}
    running: dict[Future[Answer], str] = {}
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while waiting or running:
                ready = [name for name, needed in waiting.items() if not needed]
                for name in sorted(ready, key=lambda n: -rank[n]):
                    del waiting[name]
                    answer = decide(name)
                    if answer is None:
                        running[pool.submit(work, name)] = name
                    else:
                        _settle(name, answer, answers, waiting)
                if running and not any(not needed for needed in waiting.values()):
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        _settle(running.pop(future), future.result(), answers, waiting)
        except BaseException:
            stop()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return answers


def _settle(name: str, answer: Answer, answers: dict[str, Answer], waiting: Mapping[str, set[str]]) -> None:
    answers[name] = answer
    for needed in waiting.values():
        needed.discard(name)

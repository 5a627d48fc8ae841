"""Runs steps that need one another, several at a time, those on the longest way to the end first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter
from typing import TypeVar

Answer = TypeVar("Answer")


def critical_seconds(needs: Mapping[str, Sequence[str]], own: Mapping[str, float]) -> dict[str, float]:
    """For each step the seconds from its start to the end of the last step that waits for it."""
    users = _users(needs)
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
    order = TopologicalSorter(needs)
    order.prepare()
    answers: dict[str, Answer] = {}
    running: dict[Future[Answer], str] = {}

    def settle(name: str, answer: Answer) -> None:
        answers[name] = answer
        order.done(name)

    with ThreadPoolExecutor(jobs) as pool:
        try:
            while order.is_active():
                ready = order.get_ready()
                for name in sorted(ready, key=lambda name: -rank[name]):
                    answer = decide(name)
                    if answer is None:
                        running[pool.submit(work, name)] = name
                    else:
                        settle(name, answer)
                if running and not ready:  # what was just settled may have made others ready
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        settle(running.pop(future), future.result())
        except BaseException:
            stop()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return answers


def _users(needs: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """For each step those that wait for it."""
    users: dict[str, list[str]] = {name: [] for name in needs}
    for name, needed in needs.items():
        for other in dict.fromkeys(needed):
            users[other].append(name)
    return users

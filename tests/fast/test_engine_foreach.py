"""``foreach`` and ``*`` in targets.toml: what they stand for, and errors that name the line."""

import pytest

from orchestrator import foreach
from orchestrator.errors import ConfigurationError
from orchestrator.targets import parse_targets, select
from orchestrator.workloads import choose_workloads

GOOD = """schema = 1
[target."k-{curve}-{bits}"]
foreach = [
    { curve = "a", bits = [8, 16] },
    { curve = ["b"], bits = "8" },
]
kind = "cubin"
sources = ["src/{curve}.cu"]
defines = ["BITS={bits}", "BOTH={curve}{bits}"]
[target."k-{curve}-{bits}".expect]
kernels = ["run_{curve}"]
[target."k-{curve}-{bits}".variants."wide{w}"]
foreach = { w = [2, 4] }
defines = ["W={w}", "OF={curve}"]
[target.host-a]
kind = "shared-library"
sources = ["src/host.cu"]
[workload."time-{curve}"]
foreach = { curve = ["a", "b"] }
command = ["run", "--curve={curve}", "awk", "{ print $1 }"]
uses = ["k-{curve}-*"]
[workload.all]
command = ["run", "{anything}"]
uses = ["host-a", "*"]
"""


def test_a_table_stands_for_every_combination():
    project = parse_targets(GOOD)
    names = [t.name for t in project.targets]
    assert names == [
        *("k-a-8", "k-a-8.wide2", "k-a-8.wide4", "k-a-16", "k-a-16.wide2", "k-a-16.wide4"),
        *("k-b-8", "k-b-8.wide2", "k-b-8.wide4", "host-a"),
    ]
    a16, wide = project.targets[3], project.targets[5]
    assert (a16.sources, a16.defines) == (("src/a.cu",), ("BITS=16", "BOTH=a16"))
    assert a16.expect.kernels == ("run_a",)
    assert a16.line == 2
    assert wide.defines == ("BITS=16", "BOTH=a16", "W=4", "OF=a")


def test_a_star_means_names_in_their_order_but_no_variants():
    workloads = {w.name: w for w in parse_targets(GOOD).workloads}
    assert list(workloads) == ["time-a", "time-b", "all"]
    assert workloads["time-a"].uses == ("k-a-8", "k-a-16")
    assert workloads["time-b"].uses == ("k-b-8",)
    assert workloads["all"].uses == ("host-a", "k-a-8", "k-a-16", "k-b-8")


def test_braces_that_hold_no_name_stay():
    workloads = {w.name: w for w in parse_targets(GOOD).workloads}
    assert workloads["time-b"].command == ("run", "--curve=b", "awk", "{ print $1 }")
    assert workloads["all"].command == ("run", "{anything}")


def test_a_target_may_use_what_a_star_means_and_never_itself():
    text = """schema = 1
[target."part-{n}"]
foreach = { n = [1, 2] }
kind = "object"
sources = ["{n}.cu"]
[target.part-all]
kind = "archive"
uses = ["part-*"]
"""
    assert select(parse_targets(text), ["part-all"])[-1].uses == ("part-1", "part-2")


def test_names_asked_for_may_hold_a_star():
    project = parse_targets(GOOD)
    assert [t.name for t in select(project, ["k-a-8.*"])] == ["k-a-8.wide2", "k-a-8.wide4"]
    assert [t.name for t in select(project, ["host-a", "*-8"])] == ["host-a", "k-a-8", "k-b-8"]
    assert [w.name for w in choose_workloads(project, ("time-*", "time-a"), "none")[0]] == [
        "time-a",
        "time-b",
    ]
    with pytest.raises(ConfigurationError, match=r"no target matches `q\*`"):
        select(project, ["q*"])
    with pytest.raises(ConfigurationError, match=r"no workload matches `x-\*`"):
        choose_workloads(project, ("x-*",), "none")


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("BITS={bits}", "BITS={bit}", 9, "`{bit}` is no name of its foreach"),
        ("src/{curve}.cu", "src/{kurve}.cu", 8, "names: curve, bits"),
        ("run_{curve}", "run_{w}", 11, "`{w}`"),
        ("W={w}", "W={v}", 14, "`{v}`"),
        ('[target."k-{curve}-{bits}"]', '[target."k-{curve}"]', 2, "a second `k-a`; the first: line 2"),
        ("[target.host-a]", "[target.k-b-8]", 15, "a second `k-b-8`; the first: line 2"),
        ("bits = [8, 16]", "bits = []", 3, "bits must be a text or a whole number"),
        ("bits = [8, 16]", "bits = [true]", 3, "bits must be"),
        ("bits = [8, 16]", "bits = [8, 8]", 3, "bits has a value twice"),
        ("bits = [8, 16]", "'a b' = [8, 16]", 3, "not a name"),
        ('foreach = { curve = ["a", "b"] }', "foreach = []", 19, "nothing to make"),
        ('foreach = { curve = ["a", "b"] }', 'foreach = "a"', 19, "must be a table of lists"),
        ('curve = ["b"]', 'curve = ["b c"]', 2, "(as `k-b c-8`): not a name"),
        ("k-{curve}-*", "q-{curve}-*", 21, "(as `time-a`): no target matches `q-a-*`"),
        ("k-{curve}-*", "k-{curve}-32", 21, "no target is called `k-a-32`"),
        ('"src/{curve}.cu"', '"src/{curve}.cu", "x.cu"', 8, "(as `k-a-8`): 2 sources"),
    ],
)
def test_errors_name_file_line_and_what_was_made(old, new, line, said):
    assert old in GOOD
    with pytest.raises(ConfigurationError) as caught:
        parse_targets(GOOD.replace(old, new, 1))
    error = caught.value
    assert error.what.startswith(f"manifests/targets.toml:{line}: "), error.what
    assert said in error.what + " " + error.remedy
    assert error.remedy


def test_keys_that_become_one_are_refused():
    with pytest.raises(foreach.Unusable, match="become one"):
        foreach.substitute({"{a}": 1, "x": 2}, {"a": "x"})

"""targets.toml: what is accepted, and that each error names its line and key."""

import pytest

from orchestrator.errors import ConfigurationError
from orchestrator.model import Kind
from orchestrator.targets import owned_flag, parse_targets, select, unit_of, unsafe_path
from orchestrator.tomlline import Lines

GOOD = """schema = 1
[project]
name = "p"
source-roots = ["src"]
[target.a]
kind = "cubin"
sources = ["src/a.cu"]
flags = ["-O3", "-Xcompiler", ',"-ffast-math"']
defines = ["A=1"]
[target.a.expect]
kernels = ["k"]
no-spills = true
[target.a.variants.wide]
flags = ["-DW=16"]
[target.lib]
kind = "shared-library"
sources = ["src/lib.cu"]
[workload.w]
command = ["run", "it"]
uses = ["lib", "a"]
warmups = 0
"""


def test_a_whole_file_is_read():
    project = parse_targets(GOOD)
    a, wide, lib = project.targets
    assert (a.name, a.kind, a.arch, a.line) == ("a", Kind.CUBIN, "auto", 5)
    assert a.flags == ("-O3", "-Xcompiler", ',"-ffast-math"')
    assert a.expect.kernels == ("k",)
    assert a.expect.no_spills
    assert (wide.name, wide.variant, wide.flags) == ("a.wide", "wide", (*a.flags, "-DW=16"))
    assert wide.defines == a.defines
    assert (lib.kind, lib.arch) == (Kind.SHARED_LIBRARY, None)
    (workload,) = project.workloads
    assert (workload.samples, workload.warmups, workload.uses) == (5, 0, ("lib", "a"))


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('kind = "cubin"', 'kind = "cubbin"', 6, "kind"),
        ("flags = [", "flgas = [", 8, "did you mean `flags`"),
        ("no-spills = true", "no-spills = 1", 12, "true or false"),
        ("kernels = ", "kernel = ", 11, "did you mean `kernels`"),
        ('sources = ["src/a.cu"]', 'sources = ["src/a.cu", "b.cu"]', 7, "2 sources"),
        ('sources = ["src/a.cu"]', 'sources = ["src/$(touch X).cu"]', 7, "shell"),
        ('sources = ["src/a.cu"]', 'sources = ["-O3"]', 7, "option"),
        ('"-O3"', '"-o", "x"', 8, "`-o` cannot be set here"),
        ('"-O3"', '"-arch=sm_80"', 8, "set `arch`"),
        ("warmups = 0", "warmups = -1", 21, "0 or more"),
        ('uses = ["lib", "a"]', 'uses = ["libb"]', 20, "no target is called `libb`"),
        ('command = ["run", "it"]', "command = []", 19, "no command"),
        ('flags = ["-O3"', 'uses = ["lib"]\nflags = ["-O3"', 8, "uses no other target"),
        ('kind = "cubin"', 'kind = "archive"', 7, "1 sources for an archive"),
        ('kind = "cubin"\nsources = ["src/a.cu"]', 'kind = "device-link"', 5, "made from nothing"),
        ('kind = "cubin"\nsources = ["src/a.cu"]', 'kind = "archive"\nuses = ["lib"]', 7, "cannot use `lib`"),
        ("schema = 1", "schema = 2", 1, "must be 1"),
        ("[target.lib]", "[target.'a b']", 15, "not a name"),
        ("[target.lib]", "[target.a_wide]", 15, "punctuation"),
        ('kind = "shared-library"', 'kind = "shared-library"\narch = "sm_90"', 17, "no device code"),
    ],
)
def test_errors_name_file_line_and_key(old, new, line, said):
    assert old in GOOD
    with pytest.raises(ConfigurationError) as caught:
        parse_targets(GOOD.replace(old, new, 1))
    error = caught.value
    assert error.what.startswith(f"manifests/targets.toml:{line}: ")
    assert said in error.what + error.remedy
    assert error.remedy


DOTTED = """schema = 1
target.b.kind = "cubin"
target.b.sources = ["b.cu"]
[target.a]
kind = "cubin"
sources = [
  "a.cu"
]
flags = ["]", '[']  # ]
expect.archs = ["sm_90"]
expect . no-spills = true
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "key"),
    [
        ('["sm_90"]', "90", 10, "target.a.expect.archs"),
        ("no-spills = true", "no-spills = 1", 11, "target.a.expect.no-spills"),
        ("no-spills = true", "nospills = true", 11, "target.a.expect.nospills"),
        ('  "a.cu"', '  "a.cu", "$b"', 6, "target.a.sources"),
        ('"b.cu"', '"-b"', 3, "target.b.sources"),
        ('target.b.kind = "cubin"', 'target.b.kind = "cub"', 2, "target.b.kind"),
        ('  "a.cu"', '  "archs = 1"\n,"x"', 6, "target.a.sources"),
    ],
)
def test_keys_with_dots_and_lists_over_several_lines_have_their_own_line(old, new, line, key):
    parse_targets(DOTTED)
    assert old in DOTTED
    with pytest.raises(ConfigurationError) as caught:
        parse_targets(DOTTED.replace(old, new, 1))
    assert caught.value.what.startswith(f"manifests/targets.toml:{line}: {key}")


def test_where_sources_are_named_is_known():
    a, b = sorted(parse_targets(DOTTED).targets, key=lambda target: target.name)
    assert (a.sources_line, b.sources_line) == (6, 3)


def test_broken_toml_names_the_line():
    with pytest.raises(ConfigurationError, match="line 2"):
        parse_targets("schema = 1\nkind =\n")


def test_keys_are_found_in_their_own_table():
    text = '[a]\nx = 1\n[b]\ny = 2\nx = [\n 1,\n]\n["b.c"]\nx = 3\n'
    lines = Lines(text)
    assert lines.find(("b",), "x") == 5
    assert lines.find(("b.c",), "x") == 9
    assert lines.find(("b",), None) == 3
    assert lines.find(("b", "deeper"), "nowhere") == 3
    assert lines.find(("z",), "x") == 1


def test_selection_keeps_order_and_suggests_names():
    project = parse_targets(GOOD)
    assert [t.name for t in select(project, [])] == ["a", "a.wide", "lib"]
    assert [t.name for t in select(project, ["lib", "a", "lib"])] == ["lib", "a"]
    with pytest.raises(ConfigurationError) as caught:
        select(project, ["lob"])
    assert caught.value.remedy == "did you mean `lib`?"


@pytest.mark.parametrize("name", ["a b/c.cu", "größe.cu", "a'b.cu", "a;b.cu", "a&b.cu", "(x).cu"])
def test_names_that_a_shell_leaves_alone_between_quotes_are_accepted(name):
    assert unsafe_path(name) == ""


@pytest.mark.parametrize("name", ["", "$x.cu", "`x`.cu", 'a"b.cu', "a\\b.cu", "a\nb.cu", "-x.cu", "@x"])
def test_names_that_nvcc_would_act_on_are_refused(name):
    assert unsafe_path(name)


def test_units_are_identifiers():
    assert unit_of("host-bls12_381.wide+x").isidentifier()


CHAIN = """schema = 1
[target.program]
kind = "executable"
uses = ["objects", "link"]
[target.objects]
kind = "archive"
uses = ["a", "b"]
[target.a]
kind = "object"
sources = ["a.cu"]
[target.b]
kind = "object"
sources = ["b.cu"]
flags = ["-gencode", "arch=compute_80,code=sm_80"]
[target.link]
kind = "device-link"
uses = ["a", "b"]
"""


def test_what_is_used_comes_first():
    project = parse_targets(CHAIN)
    order = [t.name for t in select(project, ["program"])]
    assert order == ["a", "b", "objects", "link", "program"]
    archs = {t.name: t.arch for t in project.targets}
    assert archs == {"program": "auto", "objects": None, "a": "auto", "b": None, "link": "auto"}


def test_a_circle_is_named():
    text = CHAIN.replace('uses = ["a", "b"]', 'uses = ["a", "more"]', 1) + (
        '[target.more]\nkind = "device-link"\nuses = ["objects"]\n'
    )
    with pytest.raises(ConfigurationError, match=r"a circle: .*objects -> more -> objects"):
        parse_targets(text)


def test_one_architecture_or_several_but_not_both_ways():
    text = CHAIN.replace('compute_80,code=sm_80"]', 'compute_80,code=sm_80"]\narch = "sm_90"')
    with pytest.raises(ConfigurationError, match=r"toml:15: target\.b\.arch: both `arch` and -gencode"):
        parse_targets(text)


@pytest.mark.parametrize("text", ["a = " + "[" * 5000 + "]" * 5000, "schema = true\n", "schema = 1.0\n"])
def test_nesting_without_end_and_a_schema_of_another_kind_are_mistakes(text):
    with pytest.raises(ConfigurationError):
        parse_targets(text)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["-ofoo"], "digest"),
        (["-dc"], "-rdc=true"),
        (["--cubin"], "kind"),
        (["--help"], "compiles nothing"),
        (["-Xcompiler", "-O2,-wrapper,time"], "wrapper"),
        (["-optf", "o.txt", "-O3", "-opt-info", "inline"], None),
    ],
)
def test_flags_that_are_the_tools_to_set(flags, said):
    found = owned_flag(flags)
    assert (found is None) == (said is None)
    assert said is None or said in found[1]


def test_a_name_too_long_for_a_file_is_refused_with_its_line():
    text = f'schema = 1\n[target.{"k" * 300}]\nkind = "cubin"\nsources = ["k.cu"]\n'
    with pytest.raises(ConfigurationError, match=r"toml:2: .*a name of 300 characters"):
        parse_targets(text)

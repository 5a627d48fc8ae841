"""Names looked for and not found, worked out from include directives and the search path."""

import pytest

from orchestrator.lookup import (
    SearchPath,
    absent_forced,
    absent_names,
    group_by_folder,
    named_macros,
    read_directives,
)

SEARCH = SearchPath(quoted=("q",), bracketed=("inc1", "inc2", "/usr/include"))


def absent(sources, *, forced=(), definitions=(), search=SEARCH, there=()):
    files = {name: read_directives(text.encode()) for name, text in sources.items()}
    present = {*sources, *there}
    macros = named_macros(files.values(), definitions)
    names, unknown = absent_names(files, macros, search, present.__contains__)
    return names | absent_forced(forced, search, present.__contains__), unknown


@pytest.mark.parametrize(
    "directive",
    [
        '#include "x.h"',
        '  #  include\t"x.h" // why',
        '#/* a */include/* b */"x.h"',
        '%:include "x.h"',
        '#import "x.h"',
        '#incl\\\nude "x.h"',
        '#ifdef NEVER\n#include "x.h"\n#endif',
    ],
)
def test_every_spelling_of_a_quoted_include_is_seen(directive):
    names, unknown = absent({"src/a.cu": directive})
    assert names == {"src/x.h", "q/x.h", "inc1/x.h", "inc2/x.h", "/usr/include/x.h"}
    assert unknown == ()


def test_the_search_stops_at_the_first_file():
    names, _ = absent({"src/a.cu": '#include "x.h"', "inc2/x.h": ""})
    assert names == {"src/x.h", "q/x.h", "inc1/x.h"}


def test_brackets_do_not_look_beside_the_includer():
    assert absent({"src/a.cu": "#include <x.h>", "inc1/x.h": ""})[0] == {"q/x.h"}


def test_a_file_in_a_later_folder_is_hidden_by_one_in_an_earlier_folder_however_it_was_spelled():
    names, _ = absent({"src/a.cu": "#include CAT(x, .h)", "inc2/sub/x.h": ""})
    assert names == {"q/sub/x.h", "inc1/sub/x.h"}


def test_a_name_from_a_macro_is_followed_beside_the_includer_too():
    names, _ = absent({"src/a.cu": '#define HDR "x.h"\n#include HDR', "inc1/x.h": ""})
    assert "src/x.h" in names
    names, _ = absent({"src/a.cu": "#include HDR", "inc1/x.h": ""}, definitions=['HDR="x.h"'])
    assert "src/x.h" in names


def test_include_next_goes_on_behind_the_first_hit():
    names, _ = absent({"inc1/x.h": "#include_next <x.h>"}, there=["inc2/x.h"])
    assert names == {"q/x.h", "/usr/include/x.h"}


@pytest.mark.parametrize(
    "text",
    [
        "#if __has_include(<maybe.h>)\n#endif",
        '#if defined(A) && __has_include( "maybe.h" )\n#endif',
        "#  elif _CCCL_HAS_INCLUDE(<maybe.h>) \\\n && X\n#endif",
        '#define M "maybe.h"\n#if __has_include(M)\n#endif',
    ],
)
def test_a_name_only_asked_about_must_stay_absent(text):
    names, unknown = absent({"src/a.cu": text})
    assert {"inc1/maybe.h", "inc2/maybe.h"} <= names
    assert unknown == ()


def test_a_name_asked_about_through_an_unknown_macro_is_reported():
    _, unknown = absent({"src/a.cu": "#if __has_include(WHO_KNOWS)\n#endif"})
    assert len(unknown) == 1
    assert "WHO_KNOWS" in unknown[0]


def test_the_definition_of_a_macro_for_has_include_is_no_question():
    assert absent({"a.h": "#define HAS(X) __has_include(X)\n"})[1] == ()


def test_forced_includes_are_looked_for_in_the_working_folder_first():
    names = {"pre.h", "q/pre.h"} | {f"{folder}pre.h.gch" for folder in ("", "q/", "inc1/")}
    assert absent({"inc1/pre.h": ""}, forced=["pre.h"])[0] == names


def test_incbins_are_found_and_those_without_a_name_reported():
    text = 'asm(".incbin \\"table.bin\\"\\n");'
    assert read_directives(text.encode()).incbins == {"table.bin"}
    assert absent({"a.cu": 'asm(".incbin " NAME);'})[1]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (r'asm(".include \"macros.s\"\n");', {"macros.s"}),
        (r'asm("\t.include \"a b.s\"; nop");', {"a b.s"}),
        ('asm(R"(.include "raw.s")");', {"raw.s"}),
        ('asm(".include " NAME "\\n");', {""}),
        ('builder.include("x.h"); s = ".include";', set()),
    ],
)
def test_files_that_the_assembler_includes_are_found(text, names):
    assert read_directives(text.encode()).incbins == names


def test_absolute_names_are_looked_for_once():
    assert absent({"a.cu": '#include "/opt/x.h"'})[0] == {"/opt/x.h"}


def test_names_are_grouped_by_folder():
    assert group_by_folder(["b/y", "x", "b/x", "/u/z"]) == (("", ("x",)), ("/u", ("z",)), ("b", ("x", "y")))


@pytest.mark.parametrize(
    ("text", "dated"),
    [
        (b"// not __TIMESTAMP__ but\nint x;\n", False),
        (b"int x; // __TIMESTAMP__\n", True),
        (b"/* a\n// */ f(__TIMESTAMP__);\n", True),
        (b'f("//", __TIMESTAMP__);\n', True),
    ],
)
def test_a_time_stamp_counts_outside_of_a_line_that_is_a_comment(text, dated):
    assert read_directives(text).dated is dated

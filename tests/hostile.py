"""Strings that would like to be more than text, and what a reader sees where they stand.

One corpus for every test that shows a stranger's strings: pages, live shells, figures, files.
"""

from typing import NamedTuple


class Shown(NamedTuple):
    """What stands for a string on a page, and in a figure, whose fonts lack the signs of control
    characters.
    """

    page: str
    figure: str


CODE = (
    "<script>window.broken=1</script>",
    "<img src=x onerror=window.broken=1>",
    "<svg onload=window.broken=1>",
    "<iframe srcdoc='<script>parent.broken=1</script>'></iframe>",
    "<body onload=window.broken=1>",
    "<input autofocus onfocus=window.broken=1>",
    "<details open ontoggle=window.broken=1>",
    "<video><source onerror=window.broken=1></video>",
    "<math><mtext></table><img src=x onerror=window.broken=1>",
    "<a href=javascript:window.broken=1>x</a>",
    "<style>*{display:none!important}</style>",
    "<link rel=stylesheet href=//example.com/x.css>",
    "<base href=//example.com/>",
    "<meta http-equiv=refresh content='0;url=//example.com'>",
    "<object data=//example.com/x></object>",
    "<template shadowrootmode=open><script>window.broken=1</script></template>",
    "javascript:window.broken=1",
    "url(//example.com/x.png)",
    "expression(window.broken=1)",
    "${window.broken=1}",
    "{{constructor.constructor('window.broken=1')()}}",
    "`+window.broken=1+`",
    "';window.broken=1;//",
    '";window.broken=1;//',
)
ENDS = ("", "</script>", "<!--", "-->", "]]>", '">', "\u202e", "</style>")
"""What may end the text that stands before code, or turn it round."""

SCRIPT_ENDS = (
    *("</script x", "</script/", "</SCRIPT ", "</script"),
    *("<!--<script ", "<!--<script>", "<script", "<script/", "--!>"),
)
"""What ends a script element, or lets no end of it count, without the ``>`` that would be escaped
too.
"""
FOR_FIGURES = (
    *("</svg><script>alert(1)</script>", "</text></svg>", "<foreignObject><body/></foreignObject>"),
    *(
        "<image href='//example.com/x.png'/>",
        "<use href='//example.com/x.svg#y'/>",
        "<set attributeName='onload'/>",
    ),
    *(
        "<?xml-stylesheet href='//example.com/x.css'?>",
        "<!DOCTYPE svg [<!ENTITY x SYSTEM '//example.com'>]>&x;",
    ),
    *("<![CDATA[", "]]>", "--></metadata>", "&amp;", "&x;", "&#0;"),
    *("$x^2$", "$", "$$", "\\frac{1}{2}_a^b", "$\\href{//example.com}{x}$", "\\input{/etc/passwd}"),
    *(
        ") /OpenAction << /S /JavaScript /JS (app.alert(1)) >> (",
        "<< /S /URI /URI (//example.com) >>",
    ),
    *(
        "endstream endobj 1 0 obj << /S /Launch /F (/bin/sh) >> endobj",
        "%%EOF",
        "\\)\\(",
        "(((",
        ")))",
    ),
)
FOR_CODE = (
    *"__proto__ constructor toString hasOwnProperty null undefined NaN 0 -1 1e999".split(),
    *(
        "%s%n",
        "{0.__class__}",
        "{title}",
        "%(x)s",
        "../../etc/passwd",
        "..\\..",
        "/",
        "//example.com",
        "a/1",
        "?x#y",
    ),
    *(
        "&lt;b&gt;",
        "&#x3c;b>",
        "\\u003cb>",
        "\\",
        "\\n",
        "\\3c b\\3e",
        '"',
        "'",
        '\\"',
        "=1+1",
        "[x](javascript:x)",
    ),
)
OTHER_SCRIPTS = (
    *"中文 مرحبا שלום กำ é".split(),
    *("\U0001f469\u200d\U0001f4bb", "\uff37\uff49\uff44\uff45", "\ufffd", "e" + "\u0301" * 40),
    "w" * 39 + "\U0001f600\U0001f600",
)


def alike(text: str) -> Shown:
    return Shown(text, text)


SIGNS = {
    "": alike("·"),
    " ": alike("␣"),
    "\t": alike("⇥"),
    "\n": alike("↵"),
    "\r\n": Shown("␍↵", "U+000D↵"),
    "\x00": Shown("␀", "U+0000"),
    "\x00\x1b": Shown("␀␛", "U+0000U+001B"),
    "\x07\x1b[31m": Shown("␇␛[31m", "⟨U+0007⟩⟨U+001B⟩[31m"),
    "\x1b]8;;//example.com\x07click\x1b]8;;\x07": Shown(
        "␛]8;;//example.com␇click␛]8;;␇",
        "⟨U+001B⟩]8;;//example.com⟨U+0007⟩click⟨U+001B⟩]8;;⟨U+0007⟩",
    ),
    "\x7f": Shown("␡", "U+007F"),
    "\x85": alike("U+0085"),
    "a\x80b\x93": alike("a⟨U+0080⟩b⟨U+0093⟩"),
    "\u00a0": alike("U+00A0"),
    "\u00ad": alike("U+00AD"),
    "\u0301": alike("◌\u0301"),
    "\u200b": alike("U+200B"),
    "\u200d": alike("U+200D"),
    "\u200e": alike("U+200E"),
    "\u2028": alike("U+2028"),
    "\u202e": alike("U+202E"),
    "\u202eabc": alike("⟨U+202E⟩abc"),
    "\u2066": alike("U+2066"),
    "\u2800": alike("U+2800"),
    "\u3164": alike("U+3164"),
    "\ufeff": alike("U+FEFF"),
    "\uffff": alike("U+FFFF"),
    "a\ufffeb": alike("a⟨U+FFFE⟩b"),
    "\U000e0041": alike("U+E0041"),
    "a\nb\tc\rd": Shown("a↵b⇥c␍d", "a↵b⇥c⟨U+000D⟩d"),
    "x" * 5000: Shown("x" * 200 + "…", "x" * 60 + "…"),
    "\u4e2d" * 300: Shown("\u4e2d" * 200 + "…", "\u4e2d" * 60 + "…"),
}
HALVES = {"\ud800": Shown("?", "U+D800"), "a\udfffb": Shown("a?b", "a⟨U+DFFF⟩b")}
"""Halves of characters, which no file in UTF-8 can hold: a page has a question mark."""


def _turned(end: str, code: str) -> Shown:
    return alike((f"⟨U+{ord(end):04X}⟩" if end == "\u202e" else end) + code)


CORPUS: dict[str, Shown] = {
    **{end + code: _turned(end, code) for end in ENDS for code in CODE},
    **{text: alike(text) for text in (*SCRIPT_ENDS, *FOR_FIGURES, *FOR_CODE, *OTHER_SCRIPTS)},
    **SIGNS,
    **HALVES,
}
"""Every string, and what stands for it."""

NAME = "</script><script>window.broken=1</script>"
"""Of models, stacks and titles."""

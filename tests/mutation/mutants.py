"""The mutants of a module: each is its source with one small change that alters what it does.

Comparisons are turned or moved by one, conditions negated, `and` and `or` exchanged, numbers and booleans changed,
statements left out, functions left at once. What is only said (texts, log lines, the arguments of errors) and what is
only checked (annotations) is let be. Docstrings, comments and layout stay, so that a mutant reads as a diff.
"""

import ast
import copy
import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

_TURNED: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
_EXCHANGED = {"min": "max", "max": "min", "any": "all", "all": "any"}
_ONLY_SAID = ("logger", "logging", "warnings")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change."""

    number: int
    """Among all of its module."""
    line: int
    source: str
    """The whole module with the change in it."""

    def diff(self, original: str) -> str:
        """The lines that differ."""
        lines = difflib.unified_diff(original.splitlines(), self.source.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    changes = sorted(_changes(ast.parse(source)), key=lambda change: change[0].lineno)
    texts = dict.fromkeys((node.lineno, _replaced(source, node, text)) for node, text in changes)
    return [Mutant(number, line, text) for number, (line, text) in enumerate(texts) if _compiles(text)]


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def _replaced(source: str, node: ast.stmt | ast.expr, text: str) -> str:
    """The source with other text in the place of a node; columns count bytes of UTF-8."""
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    before = b"".join(lines[:first]) + lines[first][: node.col_offset]
    behind = lines[last][node.end_col_offset :] + b"".join(lines[last + 1 :])
    return (before + text.encode() + behind).decode()


Change = tuple[ast.stmt | ast.expr, str]
"""A node, and the text that stands in its place."""


def _changes(tree: ast.AST) -> Iterator[Change]:
    for node in _behaviour(tree):
        if isinstance(node, ast.expr):
            for changed in _changed_expressions(node):
                yield node, f"({ast.unparse(changed)})"
        elif isinstance(node, ast.stmt):
            yield from _changed_statements(node)


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that decide what happens."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, ast.AST) and not _is_only_said(child):
                yield child
                if not isinstance(child, ast.Raise):
                    yield from _behaviour(child)


def _is_only_said(node: ast.AST) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.JoinedStr():
            return True
        case ast.Expr(ast.Constant()):
            return True
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name)))) if name in _ONLY_SAID:
            return True
        case ast.If(ast.Name("TYPE_CHECKING")) | ast.keyword("strict"):
            return True
        case ast.FunctionDef(name) if name in ("__str__", "__repr__"):
            return True
        case ast.Assign([ast.Name(name)]) if name in ("__all__", "__slots__"):
            return True
        case ast.Call(ast.Name(name)) if name[:1].isupper() and "TypeVar" in name:
            return True
    return False


def _changed_expressions(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(ops=[operator]):
            for turned in _TURNED[type(operator)]:
                yield _with(node, lambda new, turned=turned: setattr(new, "ops", [turned()]))
        case ast.BoolOp(op) | ast.BinOp(op=op) if type(op) in _TURNED:
            for turned in _TURNED[type(op)]:
                yield _with(node, lambda new, turned=turned: setattr(new, "op", turned()))
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.IfExp():
            yield _with(node, partial(_negate, field="test"))
        case ast.Call(ast.Name(name)) if name in _EXCHANGED:
            yield _with(node, lambda new: setattr(new, "func", ast.Name(_EXCHANGED[name])))
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value)):
            yield ast.Constant(value + 1)


def _changed_statements(node: ast.stmt) -> Iterator[Change]:
    match node:
        case ast.If(test) | ast.While(test) if not isinstance(test, ast.Compare | ast.UnaryOp | ast.Constant):
            yield test, f"not ({ast.unparse(test)})"
        case ast.Expr(ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete() | ast.Raise():
            yield node, "pass"
        case ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield node, "pass"
        case ast.Continue():
            yield node, "break"
        case ast.Break():
            yield node, "continue"
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield node, "return None"
        case ast.FunctionDef(body=body) if (first := _first_statement(body)) is not None:
            yield first, f"return None\n{' ' * first.col_offset}{ast.unparse(first).splitlines()[0]}"


def _first_statement(body: list[ast.stmt]) -> ast.stmt | None:
    """Behind the docstring; None where to leave at once is no change, or one that is made elsewhere."""
    rest = [stmt for stmt in body if not (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant))]
    return rest[0] if len(rest) > 1 and rest[0].lineno == rest[0].end_lineno else None


def _with(node: ast.expr, change: Callable[[ast.expr], None]) -> ast.expr:
    new = copy.deepcopy(node)
    change(new)
    return new


def _negate(node: ast.AST, field: str) -> None:
    setattr(node, field, ast.UnaryOp(ast.Not(), getattr(node, field)))

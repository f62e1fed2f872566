"""From a server's error answer to the error of the caller.

Law: only `err_code` decides. The text differs between servers, and `code` mixes faults of callers
(10111 is a 500) and of servers; both are shown only. The text may choose among hints.

If one number has several causes (10057, 10077), the hint names them, and an upper layer finds out
more. `retryable` is True only if the server refused and stored nothing, so that
sending the same call again cannot store it twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from natsstream import errors
from natsstream._wire.error_codes import ErrorCode, find_error_code
from natsstream._wire.error_rules import assets, configs, limits, messages, servers
from natsstream._wire.error_rules.rule import NamedRules, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# The server's HTTP-like code for "not now", in answers that have no err_code.
_UNAVAILABLE_CODE = 503
_MANY_CAUSES = ErrorCode.STREAM_INVALID_CONFIG


def server_error(error: Mapping[str, object], *, what: str) -> errors.ServerError:
    """Return the error to raise for the `error` object of a JetStream answer.

    Args:
        error: The object as it came: `code`, `err_code`, `description`; each may be missing.
        what: The operation and its object, such as `stream ORDERS` or `publish to orders.new`.

    Returns:
        The class that RULES has for the `err_code`. A number that the catalogue lacks gives a plain
        `ServerError`; no number and code 503 give an `UnavailableError`.
    """
    code, err_code = _number(error.get("code")), _number(error.get("err_code"))
    text = error.get("description")
    description = text if isinstance(text, str) else ""
    known = find_error_code(err_code)
    if known is not None:
        rule = RULES[known]
    elif err_code == 0 and code == _UNAVAILABLE_CODE:
        rule = Rule(errors.UnavailableError, servers.RETRY_LATER, retryable=True)
    else:
        rule = Rule(errors.ServerError, "", retryable=False)
    # Without a number the class of the error is all that identifies it.
    mark = f"[{err_code}]" if err_code else f"(code {code})"
    failure = rule.error(
        f"{what}: {description or 'the server gave no reason'} {mark}",
        code=code,
        err_code=err_code,
        description=description,
        hint=(known is _MANY_CAUSES and _hint_by_words(description)) or rule.hint,
        retryable=rule.retryable,
    )
    if isinstance(failure, errors.WrongLastSequenceError):
        failure.last_seq = _last_sequence(description)
    return failure


def _hint_by_words(description: str) -> str:
    return next((hint for words, hint in configs.HINTS_BY_WORDS if words in description), "")


def _number(value: object) -> int:
    """Return a JSON number that is an integer, 0 for anything else."""
    return value if isinstance(value, int) else 0


def _last_sequence(description: str) -> int | None:
    """Return N of 10071's `wrong last sequence: N`; 10164 has none."""
    found = re.search(r":\s*([0-9]{1,20})\s*$", description)
    return int(found[1]) if found else None


def _table(named: Iterable[NamedRules]) -> dict[ErrorCode, Rule]:
    """Spread the rules over their codes; a code with two rules fails at import."""
    table: dict[ErrorCode, Rule] = {}
    for rule, codes in named:
        for code in codes:
            if code in table:
                raise ValueError(f"two rules for {code.name} ({code.value})")
            table[code] = rule
    return table


RULES = _table((*assets.RULES, *limits.RULES, *messages.RULES, *configs.RULES, *servers.RULES))

"""Runs programs for `tests/support/programs.py`: `python -m tests.support.program_host FD`.

Law: each program is `__main__`, and has to import itself whichever module of natsstream it uses.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback


def main() -> None:
    """Run the programs that the lines of the input name; write their exit codes to FD."""
    answers = int(sys.argv[1])
    for line in sys.stdin:
        os.write(answers, b"%d\n" % _run(json.loads(line)))


def _run(task: dict[str, str]) -> int:
    kept = [os.dup(descriptor) for descriptor in (1, 2)]
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        target = os.open(task[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, descriptor)
        os.close(target)
    os.environ["NATS_URL"] = task["url"]
    os.chdir(task["folder"])
    sys.path[0] = task["folder"]
    sys.argv = [task["file"]]
    try:
        runpy.run_path(task["file"], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:  # noqa: BLE001 - As the interpreter: it is printed, and ends the program.
        traceback.print_exc()
        code = 1
    else:
        code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, saved in enumerate(kept, 1):
            os.dup2(saved, descriptor)
            os.close(saved)
    _forget_submodules()
    return code


def _forget_submodules() -> None:
    """Let `natsstream.blocking` be missing again where a program does not import it."""
    for name in [name for name in sys.modules if name.startswith("natsstream.blocking")]:
        del sys.modules[name]
    vars(sys.modules.get("natsstream", sys)).pop("blocking", None)


if __name__ == "__main__":
    main()

"""`python -m tests.simulation --seeds 2000` runs seeds; `--seed N` replays one with its trace."""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

#: The database of the simulation, kept between runs.
_KEPT = Path(__file__).resolve().parents[2] / "var" / "simulation"


def main() -> int:
    """The exit status: 0 when every seed kept every promise."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one and print its trace")
    parser.add_argument("--seeds", type=int, default=2_000, help="how many to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--faults", action="store_true", help="say what catches each planted fault")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--share", default="0/1", help=argparse.SUPPRESS)
    options = parser.parse_args()
    _use_a_database_of_our_own()
    if options.faults:
        return _faults()
    if options.seed is not None:
        return _run(range(options.seed, options.seed + 1), 0, aloud=True)
    number, of = map(int, options.share.split("/"))
    if of > 1 or options.processes <= 1:
        seeds = range(options.first + number, options.first + options.seeds, of)
        return _run(seeds, number, aloud=False)
    _prepare(options.processes)
    own = [sys.executable, "-m", "tests.simulation", "--seeds", str(options.seeds)]
    own += ["--first", str(options.first)]
    started = time.monotonic()
    parts = [
        subprocess.Popen([*own, "--share", f"{part}/{options.processes}"])
        for part in range(options.processes)
    ]
    failed = sum(part.wait() != 0 for part in parts)
    print(f"{options.seeds} seeds in {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


def _use_a_database_of_our_own() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reconcile.settings")
    os.environ.setdefault("RECONCILE_DATA_DIR", str(_KEPT))
    os.environ.setdefault("RECONCILE_EMBEDDED_DURABLE", "0")
    os.environ.setdefault("RECONCILE_INSECURE_LOCAL", "1")
    os.environ.setdefault("CELERY_BROKER_URL", "memory://")
    import django

    django.setup()


def _prepare(processes: int) -> None:
    """Make or migrate the databases before the processes start, one after the other."""
    for number in range(processes):
        _open_database(number)


def _open_database(number: int) -> None:
    from django.db import connection

    connection.close()
    base = os.environ.setdefault("SIMULATION_DATABASE", connection.settings_dict["NAME"])
    connection.settings_dict["NAME"] = base
    connection.settings_dict["TEST"]["NAME"] = f"simulation_{number}"
    connection.creation.create_test_db(verbosity=0, autoclobber=True, keepdb=True, serialize=False)


def _run(seeds: range, number: int, *, aloud: bool) -> int:
    from tests.simulation import database
    from tests.simulation.seeds import run_seed
    from tests.simulation.world import SimulationFailed

    _open_database(number)
    database.prepare()
    for count, seed in enumerate(seeds):
        try:
            world = run_seed(seed)
        except SimulationFailed as failure:
            print("\n".join([*failure.__notes__, f"FAILED {failure}"]))
            return 1
        if aloud:
            print(f"{world.told()}\n\nSeed {seed} kept every promise.")
        if count % 100 == 99:
            database.tidy()
    print(f"{len(seeds)} seeds from {seeds.start} kept every promise")
    return 0


def _faults() -> int:
    """Plant every fault, with the database's own guards off, and print a table."""
    from tests.simulation import database
    from tests.simulation.faults import PLANTED
    from tests.simulation.seeds import first_red

    _open_database(0)
    database.prepare()
    print("| fault | what is wrong | caught by | at seed |\n| --- | --- | --- | --- |")
    missed = 0
    for fault in PLANTED:
        with database.guards_off(), fault.plant():
            seed, check = first_red(range(500)) or (None, "nothing")
        missed += seed is None
        print(f"| {fault.name} | {fault.says} | {check} | {seed} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

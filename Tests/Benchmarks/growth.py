# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""How cost grows: what a thousand routes, upstreams, patterns, tokens, realms, sessions or connections cost beside one or few.

Each comparison has daemons of its own, that differ in one number, and nginx where it has the same thing. Both sides are asked in turn, and
the ratio is the median of those of all rounds.
"""

import contextlib
import http.client
import resource
import statistics
import subprocess
import threading
import time
from dataclasses import dataclass

import callers
import configurations
import contestants
import load
import many
import measure
import memory
from machine import program
from processes import free_port, nanoseconds, wait_until
from scenarios import Scenario

CONNECTIONS = 32
# So many of a thousand are a few.
FEW = 10
# The builds of the daemon; the other one is there with `--against`.
BUILDS = ("countersign", "other build")
# Logins whose CPU is one figure, and looks at /readyz.
BATCH, LOOKS = 100, 9
# Seconds until each token is known.
KNOWN = 60
# A path that no request had before, below the one that is put in.
NEW_PATH = """
local number, begin = 0, os.time()
request = function()
    number = number + 1
    return wrk.format("GET", %s .. begin .. "-" .. number)
end
"""


@dataclass(frozen=True)
class Site:
    """The part's upstream, by the kinds of `many.upstream`, and the programs before it."""
    folder: str
    programs: dict
    ports: dict

    @property
    def builds(self):
        return [name for name in BUILDS if name in self.programs]

    def start(self, ends, name, configuration, *arguments, environment=None):
        """That contestant with `configuration(folder, port, *arguments)`."""
        port = free_port()
        label = f"{name}, {configuration.__name__} {arguments[-1] if arguments else ''}".strip()
        return contestants.configured(
            ends, self.folder, label.replace(" ", "-"), self.programs[name],
            lambda folder: configuration(folder, port, *arguments), port, environment)


def run(folder, programs, plan, progress):
    """By what grows, and by contestant: the figures of few and of many."""
    callers.allow_many()
    results = {}
    with contextlib.ExitStack() as ends:
        ports = {kind: free_port() for kind in ("open", "basic", "realms")}
        contestants.configured(
            ends, folder, "growth-upstream", program("nginx"), lambda own: many.upstream(own, ports), ports["open"])
        site = Site(folder, programs, ports)
        for name, part in PARTS.items():
            if plan.growth.only in name:
                results[name] = part(name, site, plan)
                progress(f"{name}: " + "; ".join(
                    f"{who} " + ", ".join(f"{key} {value}" for key, value in each.items() if not isinstance(value, list))
                    for who, each in results[name].items()))
    return results


# CPU of a request. Each side is a contestant and what wrk asks of it.

def path_routes(name, site, plan):
    return _routes(name, site, plan, "path", lambda number: {"path": f"{many.path(number)}balance"})


def host_routes(name, site, plan):
    return _routes(name, site, plan, "host", lambda number: {"more_script": f'wrk.headers["Host"] = "{many.host(number)}"\n'})


def _routes(name, site, plan, kind, request):
    """The last of many routes beside the first, of one server."""
    count, pairs = plan.growth.routes, {}
    with contextlib.ExitStack() as ends:
        for who in [*site.builds, *(["nginx"] if "nginx" in site.programs else [])]:
            server = site.start(ends, who, many.nginx_routes if who == "nginx" else many.routes, site.ports["open"], kind, count)
            pairs[who] = [(server, _scenario(f"{name} {number}", **request(number))) for number in (0, count - 1)]
        return _compared(site, plan, pairs)


def location_patterns(name, site, plan):
    """A path that is new at each request, below the last pattern."""
    return _sizes(name, site, plan, (1, plan.growth.patterns), many.patterns, "basic", lambda count: (
        [f"{many.path(count - 1)}first"], {"more_script": NEW_PATH % f'"{many.path(count - 1)}"'}))


def caller_tokens(name, site, plan):
    """A request with the last token."""
    return _sizes(name, site, plan, (1, plan.growth.tokens), many.tokens, "open", lambda count: (
        [], {"more_script": f'wrk.headers["Authorization"] = "Bearer {many.token(count - 1)}"\n'}), with_tokens=True)


def realms(name, site, plan):
    """Paths that are new at each request, below each realm in turn; there is a session for each."""
    return _sizes(name, site, plan, (1, plan.growth.realms), many.realms, "realms", lambda count: (
        [f"/s{number}/first" for number in range(count)], {"more_script": NEW_PATH % f'"/s" .. number % {count} .. "/"'}))


def _sizes(name, site, plan, counts, configuration, kind, asked, with_tokens=False):
    """A daemon with many beside one with few. `asked(count)`: paths that log in, and what is asked then."""
    pairs = {}
    with contextlib.ExitStack() as ends:
        for who in site.builds:
            sides = []
            for count in counts:
                environment = many.credentials(site.folder, count) if with_tokens else None
                server = site.start(ends, who, configuration, site.ports[kind], count, environment=environment)
                if with_tokens:
                    with _connection(server) as connection:
                        if not wait_until(lambda: _status_with_token(connection, count - 1) == 200, KNOWN):
                            raise contestants.NotReady(f"{who}: the token of a caller is not known\n{server.server.last_words()}")
                first, request = asked(count)
                for path in first:
                    _expect(server, contestants.ask(server.ports["plain"], path)[0])
                sides.append((server, _scenario(f"{name} {count}", **request)))
            pairs[who] = sides
        return _compared(site, plan, pairs)


def _scenario(name, **request):
    return Scenario(name, CONNECTIONS, rounds=0, **request)


def _compared(site, plan, pairs):
    """By contestant the CPU of a request on both sides, in µs, and the ratio."""
    rounds = {who: [] for who in pairs}
    # The first round brings about what is there once.
    for number in range(plan.growth.rounds + 1):
        for who, sides in pairs.items():
            costs = {}
            for index in (0, 1) if number % 2 else (1, 0):
                server, scenario = sides[index]
                costs[index] = measure.once(server, scenario, load.script(site.folder, scenario), plan.seconds)["cpu"]
            if number:
                rounds[who].append([costs[0], costs[1]])
    return {who: _ratio(each) for who, each in rounds.items()}


def _ratio(rounds):
    """Medians of rounds of few and many."""
    few, many_of_it = (statistics.median(each) for each in zip(*rounds))
    ratio = statistics.median(more / max(less, 0.001) for less, more in rounds)
    return {
        "few": round(few, 2), "many": round(many_of_it, 2), "ratio": round(ratio, 3),
        "rounds": [{"few": less, "many": more} for less, more in rounds]}


# What is done once.

def starts(_, site, plan):
    """Milliseconds of CPU until the daemon answers, with upstreams that have a challenge each; seconds for many."""
    counts = (plan.growth.upstreams // FEW, plan.growth.upstreams)
    rounds, seconds = {who: [] for who in site.builds}, {who: [] for who in site.builds}
    for _ in range(plan.growth.starts):
        for who in site.builds:
            costs = []
            for count in counts:
                with contextlib.ExitStack() as ends:
                    begin = time.monotonic()
                    server = site.start(ends, who, many.upstreams, count)
                    status, _ = contestants.ask(server.ports["plain"], "/none")
                    elapsed = time.monotonic() - begin
                    costs.append(round(_cpu(server) * 1000, 1))
                if status != 404:
                    raise contestants.NotReady(f"{who} answers {status} where there is no route")
            rounds[who].append(costs)
            seconds[who].append(elapsed)
    return {who: {**_ratio(rounds[who]), "seconds": round(statistics.median(seconds[who]), 3)} for who in site.builds}


def checks(_, site, plan):
    """Seconds of CPU of `check` with many path routes."""
    own = f"{site.folder}/checked"
    with open(own, "w") as file:
        file.write(many.routes(site.folder, free_port(), free_port(), "path", plan.growth.checked_routes))
    rounds = {who: [] for who in site.builds}
    for _ in range(plan.growth.starts):
        for who in site.builds:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                [site.programs[who], "check", "--config", own], capture_output=True, text=True,
                env=configurations.countersign_environment(site.folder))
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if done.returncode:
                raise contestants.NotReady(f"{who} check: {done.stdout[-500:]}{done.stderr[-500:]}")
            rounds[who].append(round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 4))
    return {who: {"cpu": statistics.median(each), "rounds": [{"cpu": cpu} for cpu in each]} for who, each in rounds.items()}


def logins(_, site, plan):
    """Each caller logs in for itself: CPU of a login in µs, early and at the end; then of a /readyz, and how long a request waits meanwhile."""
    rounds = {who: [] for who in site.builds}
    looks, stalls = {who: [] for who in site.builds}, {who: [] for who in site.builds}
    for _ in range(plan.growth.starts):
        for who in site.builds:
            with contextlib.ExitStack() as ends:
                admin, count = free_port(), plan.growth.logins
                server = site.start(
                    ends, who, many.sessions, site.ports["basic"], admin, count, environment=many.credentials(site.folder, count))
                _wait_until_known(server, admin)
                rounds[who].append(_logged_in(server, count))
                looks[who].append(_readyz_cpu(server, admin))
                stalls[who].append(_stall(server, admin))
    return {
        who: {**_ratio(rounds[who]), "readyz": round(statistics.median(looks[who]), 2), "stall": round(statistics.median(stalls[who]), 2)}
        for who in site.builds}


def _logged_in(server, count):
    """Lets each caller log in; the CPU of a login, of a batch around the hundredth and of the last."""
    marks, batch = {}, min(BATCH, count // 3)
    with _connection(server) as connection:
        for number in range(count):
            if number in (batch // 2, batch // 2 + batch, count - batch):
                marks[number] = _cpu(server)
            _expect(server, _status_with_token(connection, number))
    marks[count] = _cpu(server)
    costs = [(marks[end] - marks[end - batch]) * 1e6 / batch for end in (batch // 2 + batch, count)]
    return [round(cost, 1) for cost in costs]


def _readyz_cpu(server, admin):
    """Milliseconds of CPU of one GET /readyz."""
    costs = []
    for _ in range(LOOKS):
        before = _cpu(server)
        _ready(server, admin)
        costs.append((_cpu(server) - before) * 1000)
    return statistics.median(costs)


def _stall(server, admin):
    """Milliseconds that the slowest request waits while /readyz is asked, five times in a row: the median of some of these."""
    worst = []
    with callers.connect(server.ports["plain"]) as caller:
        for _ in range(LOOKS):
            asking = threading.Thread(target=lambda: [_ready(server, admin) for _ in range(5)])
            asking.start()
            worst.append(0)
            while asking.is_alive():
                begin = time.perf_counter()
                callers.request(caller, "/balance", f"Authorization: Bearer {many.token(0)}\r\n")
                _expect(server, callers.answer(caller))
                worst[-1] = max(worst[-1], (time.perf_counter() - begin) * 1000)
            asking.join()
    return statistics.median(worst)


# Memory.

def connections(_, site, plan):
    """MiB above those before any of these callers came: idle ones that were served, and ones who do not read their answer; then without them."""
    rounds = {who: [] for who in site.builds}
    for _ in range(plan.growth.starts):
        for who in site.builds:
            with contextlib.ExitStack() as ends:
                server = site.start(ends, who, many.plain, site.ports["open"])
                rounds[who].append(memory.held(server.server, server.ports["plain"], plan))
    return {
        who: {**{key: statistics.median(each[key] for each in every) for key in every[0]}, "rounds": every}
        for who, every in rounds.items()}


# What the parts share.

def _cpu(server):
    """Seconds of the daemon, which is one process."""
    return nanoseconds(server.server.process.pid) / 1e9


def _ready(server, admin):
    _expect(server, contestants.ask(admin, "/readyz")[0])


def _wait_until_known(server, admin):
    """Waits for the tokens of all callers."""
    if not wait_until(lambda: '"callers":"known"' in contestants.ask(admin, "/readyz")[1], KNOWN):
        raise contestants.NotReady(f"{server.name}: not all tokens are known\n{server.server.last_words()}")


def _connection(server):
    """One that is made anew where the daemon has ended it."""
    return contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.ports["plain"], timeout=20))


def _status_with_token(connection, number):
    connection.request("GET", "/balance", headers={"Authorization": f"Bearer {many.token(number)}"})
    response = connection.getresponse()
    response.read()
    return response.status


def _expect(server, status):
    if status != 200:
        raise contestants.NotReady(f"{server.name} answers {status}\n{server.server.last_words()}")


# In the order in which they run; `--only` looks for a word in their names.
PARTS = {
    "path routes": path_routes, "host routes": host_routes, "location patterns": location_patterns, "callers' tokens": caller_tokens,
    "realms": realms, "start of upstreams": starts, "check of routes": checks, "logins by caller": logins, "memory of connections": connections,
}
# The figures that are no ratios, and what they are for people.
FIGURES = (
    ("start of upstreams", "seconds", "start, seconds"),
    ("check of routes", "cpu", "`check`, seconds of CPU"),
    ("logins by caller", "readyz", "CPU of a /readyz, ms"),
    ("logins by caller", "stall", "worst wait of a request meanwhile, ms"),
    ("memory of connections", "idle", "memory with idle connections, MiB more"),
    ("memory of connections", "idle closed", "after they closed"),
    ("memory of connections", "slow", "with slow downloads"),
    ("memory of connections", "slow closed", "after they closed"),
)

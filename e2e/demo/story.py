"""What the demo does, and what must come of it.

Every act types a command that the reader could type, shows what the operator makes of it, and goes on when
the cluster is where it has to be. What is told is read from the cluster; a wait that ends in vain, or an end
that is not the promised one, fails the demo.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from bowsprit.cli.explanation import replica_parts
from bowsprit.cli.gpumap import map_parts
from bowsprit.cli.screen import table
from bowsprit.cli.subjects import live_gpus
from bowsprit.cli.tables import nodes_text
from bowsprit.cluster.client import connect
from bowsprit.status.events import NORMAL, EventNote
from e2e.cluster.nodes import create_nodes
from e2e.demo.cluster import EXAMPLES, ROOT, inventory_nodes
from e2e.demo.screen import Screen
from e2e.demo.view import View

SECONDS = 60.0
"""What one act may take; on two cores it takes three to six."""
GPUS = {"llama-3-1-70b": 3, "mixtral-8x22b": 5, "dbrx": 4}
"""The least that holds each model on 80 GB cards, as `examples/twelve-gpus` says why."""
STYLES = {"Ready": "green", "Waiting": "yellow", "Suspended": "dim"}


class NotAsPromised(Exception):
    """The cluster did not come to where the story says; the message tells where it is."""


async def tell(kubeconfig: Path, kubectl: Path, screen: Screen) -> None:
    """The whole story. Raises NotAsPromised."""
    client = await connect(str(kubeconfig))
    view = View(client, lambda who, note: _turning_point(screen, who, note))
    story = asyncio.create_task(_Story(view, screen, kubeconfig, kubectl).run())
    tasks = {story, *(asyncio.create_task(watch.run()) for watch in view.watches)}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.close()


class _Story:
    def __init__(self, view: View, screen: Screen, kubeconfig: Path, kubectl: Path) -> None:
        self._view, self._screen = view, screen
        self._kubeconfig, self._kubectl_path = kubeconfig, kubectl

    async def run(self) -> None:
        await self._apply()
        self._stages()
        lost = await self._lose_a_node()
        paused = await self._switch()
        await self._come_back(lost, paused)

    # ---- the acts --------------------------------------------------------------------------------

    async def _apply(self) -> None:
        self._screen.act("1. Three models, twelve GPUs. None of them says how many it wants.")
        with self._screen.picture():
            await self._kubectl("apply", "-f", EXAMPLES)
            await self._until("three models Ready", lambda: self._ready() == set(GPUS))
        self._expect_twelve()
        self._screen.say(
            "",
            "  12 of 12 GPUs: 3 + 5 + 4. Tensor parallelism alone takes 4 + 8 + 4, four more than are here.",
        )

    def _stages(self) -> None:
        self._screen.act("   How each one is cut, and what it puts on every GPU:")
        for name in GPUS:
            for each in self._view.replicas(name):
                self._screen.say(Text(f"  {name}", style="bold"))
                self._screen.say(*(_shifted(part) for part in replica_parts(each, each.revision)), "")

    async def _lose_a_node(self) -> str:
        """Deletes the node on which most models stand; returns its name."""
        view = self._view
        node = max(sorted(view.nodes), key=lambda each: sum(each in view.standing_on(name) for name in GPUS))
        hit = [name for name in GPUS if node in view.standing_on(name)]
        self._screen.act(f"2. {node} dies. {' and '.join(hit)} stood on it.")
        with self._screen.picture():
            await self._kubectl("delete", "node", node)
            await self._until(
                f"every model Ready or Waiting without {node}", lambda: self._settled_without(node)
            )
        self._tell_who_waits()
        return node

    async def _switch(self) -> str:
        """Suspends the largest model that runs, for one that waits; returns its name."""
        view = self._view
        waiting = [name for name in GPUS if view.phase(name) == "Waiting"]
        giver = max(sorted(self._ready()), key=view.gpus)
        self._screen.act(f"3. Users switch models: {giver} makes room for {waiting[0]}.")
        with self._screen.picture():
            await self._patch(giver, suspend=True)
            await self._until(
                f"{waiting[0]} Ready in place of {giver}",
                lambda: view.phase(giver) == "Suspended" and waiting[0] in self._ready(),
            )
        return giver

    async def _come_back(self, node: str, paused: str) -> None:
        """Brings the node and the suspended model back."""
        before = {name: self._view.standing_on(name) for name in sorted(self._ready())}
        self._screen.act(f"4. {node} is back, and so is {paused}.")
        with self._screen.picture():
            self._screen.say(f"  {node} registers again.")
            again = [each for each in inventory_nodes() if each["metadata"]["name"] == node]
            await asyncio.to_thread(create_nodes, self._kubeconfig, again)
            await self._patch(paused, suspend=False)
            await self._until("three models Ready", lambda: self._ready() == set(GPUS))
        self._expect_twelve()
        kept = [name for name, nodes in before.items() if self._view.standing_on(name) == nodes]
        self._screen.say("", f"  12 of 12 again. Nobody was moved for it: {' and '.join(kept)} stayed.")

    # ---- what they are made of --------------------------------------------------------------------

    async def _kubectl(self, *arguments: str) -> None:
        """Runs kubectl, in sight."""
        self._screen.command(f"kubectl {' '.join(_quoted(each) for each in arguments)}")
        process = await asyncio.create_subprocess_exec(
            *(str(self._kubectl_path), f"--kubeconfig={self._kubeconfig}", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
        _, errors = await process.communicate()
        if process.returncode != 0:
            raise NotAsPromised(f"kubectl {' '.join(arguments)}: {errors.decode().strip()}")

    async def _patch(self, name: str, **spec: object) -> None:
        await self._kubectl(
            "patch", "mdep", name, "--type=merge", "-p", json.dumps({"spec": spec}, separators=(",", ":"))
        )

    async def _until(self, what: str, condition: Callable[[], bool]) -> None:
        """Draws every change until the condition holds. Raises NotAsPromised after SECONDS."""
        try:
            async with asyncio.timeout(SECONDS):
                self._draw()
                while not condition():
                    self._view.changed.clear()
                    await self._view.changed.wait()
                    self._draw()
        except TimeoutError as late:
            raise NotAsPromised(f"Waited {SECONDS:.0f} s for {what}, in vain.\n{self._state()}") from late

    def _draw(self) -> None:
        self._screen.draw([*self._map(), "", self._phases()])

    def _map(self) -> list[RenderableType]:
        return list(map_parts(live_gpus(self._view.cluster)))

    def _phases(self) -> RenderableType:
        rows = []
        for name in self._view.models:
            phase = self._view.phase(name)
            reason = str(self._view.condition(name, "Ready").get("reason", ""))
            rows.append((name, Text(phase, STYLES.get(phase, "")), reason))
        return table(("MODEL", "PHASE", "REASON"), rows)

    def _ready(self) -> set[str]:
        return {name for name in self._view.models if self._view.phase(name) == "Ready"}

    def _settled_without(self, node: str) -> bool:
        """What fits on the other nodes is Ready there; what waits holds nothing and says what it lacks."""
        view = self._view
        waiting = {name for name in view.models if view.phase(name) == "Waiting"}
        free = sum(each.free for each in view.cluster.inventory.fleet.nodes)
        return (
            node not in view.nodes
            and all(node not in view.standing_on(name) for name in view.models)
            and self._ready() | waiting == set(GPUS)
            and all(view.gpus(name) == 0 and view.short(name) == GPUS[name] - free > 0 for name in waiting)
        )

    def _tell_who_waits(self) -> None:
        for name in GPUS:
            if self._view.phase(name) == "Waiting":
                self._screen.say("", Text(f"  Why {name} waits:", style="bold"))
                self._screen.say(_shifted(Text(self._view.condition(name, "Planned")["message"])))
            else:
                nodes = ", ".join(nodes_text(each.replica.pods) for each in self._view.replicas(name))
                self._screen.say("", f"  {name} serves on {nodes}.")

    def _expect_twelve(self) -> None:
        """3 + 5 + 4 GPUs, one a pipeline stage."""
        found = {name: self._view.gpus(name) for name in GPUS}
        tensor = {each.replica.layout.tensor for name in GPUS for each in self._view.replicas(name)}
        if found != GPUS or tensor != {1}:
            raise NotAsPromised(f"Promised were {GPUS} GPUs with tp=1; found {found} with tp in {tensor}.")

    def _state(self) -> str:
        told = (
            f"  {name}: {self._view.phase(name) or 'not looked at'}: "
            f"{self._view.condition(name, 'Ready').get('message', 'no condition')}"
            for name in self._view.models
        )
        return "\n".join(told) or "  There is no model."


def _turning_point(screen: Screen, who: str, note: EventNote) -> None:
    screen.turn(who, note.reason, note.message, "" if note.type == NORMAL else "yellow")


def _shifted(part: RenderableType) -> RenderableType:
    return Padding(part, (0, 0, 0, 2))


def _quoted(word: str) -> str:
    return f"'{word}'" if any(c in word for c in ' {}"') else word

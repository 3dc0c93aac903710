"""A mixed load for minutes: does the server's memory stay flat, and does it close what it opens?

    python -m benchmarks.serve --soak 10

Clients do by turns what clients do: translate, complete (whole, streamed, and gone in mid-stream), embed, speak, look
inside, open the page, and send garbage. The server is watched from outside, through /proc.
"""

import asyncio
import io
import json
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import soundfile

EVERY = 1.0  # seconds between two looks at the process
SENTENCES = ("A man sees a dog.", "Two children play on the beach.", "I do not know where the old house is.")
LONG = " ".join(SENTENCES * 20)


class Watched:
    """A process from outside."""

    def __init__(self, pid: int) -> None:
        self.folder = Path(f"/proc/{pid}")

    def look(self) -> dict[str, float]:
        status = dict(line.split(":", 1) for line in (self.folder / "status").read_text().splitlines())
        return {
            "memory_mb": int(status["VmRSS"].split()[0]) / 1024,
            "files": len(list((self.folder / "fd").iterdir())),
            "threads": int(status["Threads"]),
        }


class Mix:
    """What the clients do; each deed says whether the answer was as it should be."""

    def __init__(self, client: httpx.AsyncClient, port: int) -> None:
        self.client, self.port = client, port
        self.sound = _recording()
        deeds = (self.translate, self.translate_long, self.complete, self.stream, self.leave, self.embed)
        self.deeds: dict[Callable[[], Awaitable[bool]], int] = {
            **dict.fromkeys(deeds, 8),
            **dict.fromkeys((self.speak, self.read_page, self.send_garbage, self.hang_up), 4),
            self.look: 1,
        }

    async def translate(self) -> bool:
        body = {"q": random.choice(SENTENCES), "source": "auto", "target": "de", "alternatives": 2}
        return (await self.client.post("/translate", json=body)).status_code == 200

    async def translate_long(self) -> bool:
        body = {"model": "en-de", "texts": [LONG[: random.randint(50, len(LONG))]], "details": True}
        return (await self.client.post("/api/translate", json=body)).status_code == 200

    def _prompt(self, **more: Any) -> dict[str, Any]:
        return {"model": "lm", "prompt": random.choice(SENTENCES), "max_tokens": random.randint(1, 60), **more}

    async def complete(self) -> bool:
        return (await self.client.post("/v1/completions", json=self._prompt(n=2, logprobs=1))).status_code == 200

    async def stream(self) -> bool:
        said = await self.client.post("/v1/completions", json=self._prompt(stream=True))
        return said.status_code == 200 and said.text.endswith("data: [DONE]\n\n")

    async def leave(self) -> bool:
        """Go away after the first piece."""
        async with self.client.stream("POST", "/v1/completions", json=self._prompt(stream=True)) as said:
            async for _ in said.aiter_lines():
                return said.status_code == 200
        return False

    async def embed(self) -> bool:
        body = {"model": "lm", "input": list(SENTENCES)}
        return (await self.client.post("/v1/embeddings", json=body)).status_code == 200

    async def speak(self) -> bool:
        files, data = {"file": ("a.wav", self.sound)}, {"model": "digits", "response_format": "verbose_json"}
        return (await self.client.post("/v1/audio/transcriptions", files=files, data=data)).status_code == 200

    async def look(self) -> bool:
        body = {"model": "lm", "texts": ["A man"], "max_tokens": 2}
        return (await self.client.post("/api/look", json=body)).status_code == 200

    async def read_page(self) -> bool:
        found = [(await self.client.get(path)).status_code for path in ("/", "/page/page.js", "/metrics", "/nowhere")]
        return found == [200, 200, 200, 404]

    async def send_garbage(self) -> bool:
        kind = {"Content-Type": "application/json"}
        path = random.choice(("/v1/completions", "/api/translate", "/translate"))
        return 400 <= (await self.client.post(path, content=random.randbytes(200), headers=kind)).status_code < 500

    async def hang_up(self) -> bool:
        """In the middle of a body."""
        _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
        await writer.drain()
        writer.close()
        return True


def _recording() -> bytes:
    file = io.BytesIO()
    wave = 0.3 * np.sin(2 * np.pi * 440 * np.arange(12_000) / 16_000)
    soundfile.write(file, wave, 16_000, format="WAV")
    return file.getvalue()


async def soak(pid: int, port: int, minutes: float, n_clients: int = 16) -> dict[str, Any]:
    """What the clients got, and how the process looked all the while."""
    watched, seen = Watched(pid), []
    done: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    limits = httpx.Limits(max_connections=n_clients)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120, limits=limits) as client:
        mix = Mix(client, port)
        deeds, weights = list(mix.deeds), list(mix.deeds.values())
        for deed in deeds:  # whatever is made at the first use is made now
            await deed()
        before, until = watched.look(), time.monotonic() + 60 * minutes

        async def live() -> None:
            while time.monotonic() < until:
                [deed] = random.choices(deeds, weights)
                name = deed.__name__
                done[name] += 1
                wrong[name] += not await deed()

        async def watch() -> None:
            while time.monotonic() < until:
                seen.append(watched.look())
                await asyncio.sleep(EVERY)

        await asyncio.gather(watch(), *(live() for _ in range(n_clients)))
    await asyncio.sleep(2)  # connections of clients that went away are seen to be closed
    after = watched.look()
    return {"done": dict(done), "wrong": sum(wrong.values()), "before": before, "after": after, **_judge(seen)}


def _judge(seen: list[dict[str, float]]) -> dict[str, Any]:
    """The last quarter beside the second: the first one still warms up."""
    quarter = max(1, len(seen) // 4)
    second, last = seen[quarter : 2 * quarter] or seen, seen[-quarter:]
    found: dict[str, Any] = {"seen": seen[:: max(1, len(seen) // 120)]}
    for name in ("memory_mb", "files", "threads"):
        then, now = (statistics.median(look[name] for look in part) for part in (second, last))
        found[name] = {"second quarter": round(then, 1), "last quarter": round(now, 1)}
        found[name]["most"] = round(max(look[name] for look in seen), 1)
    return found


def show(found: dict[str, Any]) -> list[list[Any]]:
    rows: list[list[Any]] = [["", "before", "second quarter", "last quarter", "most", "after"]]
    for name in ("memory_mb", "files", "threads"):
        middle = [found[name][part] for part in ("second quarter", "last quarter", "most")]
        rows.append([name.replace("_", " "), round(found["before"][name], 1), *middle, round(found["after"][name], 1)])
    print(json.dumps(found["done"]), f"wrong: {found['wrong']}", file=sys.stderr)
    return rows

"""Connections to the API, by those who reach its port."""

import threading
import time

from target import Case, Failed, answers, drain, must

# A probe that waits longer counts as failed with every orchestrator.
PROBE = 2.0


class Idle(Case):
    """Silent connections of five addresses, more than there are descriptors: probes are answered, and the loop goes on."""

    name, finds = "idle", ("S7",)
    # For the shell that starts the daemon: soft and hard limit.
    FILES, SOURCES, EACH = "-n 1024", 5, 256

    def run(self):
        one = self.target(files=self.FILES).begin()
        self.began(one)
        over, lines = threading.Event(), {n: [] for n in range(self.SOURCES)}

        def hold(n):
            """As many as there may be of one address; those that are ended are made anew."""
            while not over.is_set():
                lines[n] = [line for line in lines[n] if not drain(line, 0.001)[1]]
                try:
                    while len(lines[n]) < self.EACH and not over.is_set():
                        lines[n].append(one.open_line(f"127.1.0.{n + 1}", timeout=2.0))
                except OSError:
                    over.wait(0.1)

        holders = [threading.Thread(target=hold, args=(n,)) for n in lines]
        for holder in holders:
            holder.start()
        try:
            for _ in range(6):
                time.sleep(1)
                for source in ("127.1.0.1", "127.1.0.9"):
                    began = time.monotonic()
                    must(one.readiness(source, PROBE)[0], f"{self.name}: a probe from {source} says that it is not ready")
                    must(time.monotonic() - began < PROBE, f"{self.name}: a probe from {source} waited")
            one.must_act(self.name)
        except OSError as error:
            held = sum(map(len, lines.values()))
            raise Failed(f"{self.name}: with {held} silent connections a probe got no answer: {error}") from None
        finally:
            over.set()
            for holder in holders:
                holder.join()
            for line in (line for known in lines.values() for line in known):
                line.close()
        said = one.said()
        must("Too many open files" not in said and "os error 24" not in said, f"{self.name}: descriptors ran out")
        one.must_stop()
        self.left_alone()

    def began(self, one):
        """What holds before anybody attacks it."""


class Spare(Idle):
    """Silent connections of four addresses, as many as there are places, with descriptors to spare: a fifth is answered."""

    name = "spare"
    # The daemon raises a soft limit by itself.
    FILES, SOURCES = "-S -n 512", 4

    def began(self, one):
        soft, hard = one.descriptors()
        must(soft == min(hard, 65536), f"spare: the daemon may open {soft} files, and the system allows {hard}")


class Forwarded(Case):
    """A named proxy says who guesses tokens, and another client of it is not held up; others are not believed."""

    name, finds = "forwarded", ("S8",)

    def run(self):
        _, line = self.house.make_token("viewer")
        path = self.house.scratch / f"{self.name}.tokens"
        path.write_text(line)
        path.chmod(0o600)
        settings = [f"api.tokens={path}", "api.proxies=127.4.0.0/30"]
        one = self.target([word for pair in settings for word in ("--set", pair)]).begin()
        first = self.guesses(one, "127.4.0.1", ["203.0.113.7"] * 30)
        must(429 in first, "forwarded: thirty guesses of one client behind a proxy were all listened to")
        other = self.guesses(one, "127.4.0.1", ["203.0.113.8"])
        must(other == [401], "forwarded: a client behind a proxy pays for another")
        wide = self.guesses(one, "127.4.0.9", [f"203.0.113.{n}" for n in range(30)])
        must(429 in wide, "forwarded: a client that is no proxy was taken for thirty")
        one.must_stop()
        self.left_alone()

    def guesses(self, one, source, clients):
        """The answers to a wrong token of each of these clients."""
        return [
            one.ask("/api/v1/pools", token="pk_wrong", source=source, headers={"x-forwarded-for": client}).status
            for client in clients
        ]


class Guess(Case):
    """Three who guess tokens on the address of a good client: neither it nor a probe is refused."""

    name, finds = "guess", ("S8",)

    def run(self):
        one = self.target(["--set", f"api.tokens={self.tokens()}"]).begin()
        over = threading.Event()

        def guess():
            while not over.is_set():
                try:
                    one.ask("/api/v1/pools", token="pk_" + self.dice.randbytes(20).hex())
                except OSError:
                    pass

        guessers = [threading.Thread(target=guess) for _ in range(3)]
        for guesser in guessers:
            guesser.start()
        try:
            time.sleep(1)
            good = [one.ask("/api/v1/pools", token=self.token).status for _ in range(20)]
            probes = [one.ask("/ready").status for _ in range(20)]
        finally:
            over.set()
            for guesser in guessers:
                guesser.join()
        must(set(good) == {200}, f"guess: a good token was answered {sorted(set(good))}: {good.count(429)} of 20 times 429")
        must(set(probes) == {200}, f"guess: probes were answered {sorted(set(probes))}")
        one.must_stop()
        self.left_alone()

    def tokens(self):
        self.token, line = self.house.make_token("operator")
        path = self.house.scratch / f"{self.name}.tokens"
        path.write_text(line)
        path.chmod(0o600)
        return path


class Slow(Case):
    """Heads and bodies that come byte by byte, or without an end: each is cut off, and others are answered meanwhile."""

    name, finds = "slow", ("held",)
    ENDS = 45

    def run(self):
        one = self.target().begin()
        self.wrong = []
        tries = [self.head, self.body, self.giant_head, self.endless_body, self.chunks]
        threads = [threading.Thread(target=self.guarded, args=(one, each)) for each in tries]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            began = time.monotonic()
            must(one.is_ready(), "slow: it is not ready any more")
            must(time.monotonic() - began < PROBE, "slow: a probe waited")
            time.sleep(0.5)
        must(not self.wrong, "; ".join(self.wrong))
        one.must_act(self.name)
        one.must_stop()
        self.left_alone()

    def guarded(self, one, each):
        try:
            each(one)
        except Failed as failed:
            self.wrong.append(str(failed))
        except OSError:
            # It was cut off while something was sent.
            pass

    def byte_by_byte(self, line, text, what):
        end = time.monotonic() + self.ENDS
        for byte in text:
            line.sendall(bytes([byte]))
            if drain(line, 0.4)[1]:
                return
            must(time.monotonic() < end, f"slow: {what} was listened to for {self.ENDS} s")

    def head(self, one):
        self.byte_by_byte(one.open_line("127.2.0.1"), b"GET /ready HTTP/1.1\r\nhost: " + b"x" * 400, "a head")

    def body(self, one):
        line = one.open_line("127.2.0.2")
        pool = self.pools[0].name
        line.sendall(f"POST /api/v1/pools/{pool}/pause HTTP/1.1\r\nhost: 127.0.0.1:{one.port()}\r\n".encode())
        line.sendall(b"content-type: application/json\r\ncontent-length: 400\r\n\r\n")
        self.byte_by_byte(line, b"{" + b" " * 399, "a body")

    def giant_head(self, one):
        line = one.open_line("127.2.0.3")
        line.sendall(b"GET /ready HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        for n in range(20_000):
            line.sendall(f"x-{n}: {'y' * 60}\r\n".encode())
        got, ended = drain(line, 20)
        must(ended and b" 200 " not in got, f"slow: a head of a megabyte was answered {got[:80]!r}")

    def endless_body(self, one):
        line = one.open_line("127.2.0.4")
        head = f"PUT /api/v1/pools/x?why=x HTTP/1.1\r\nhost: 127.0.0.1:{one.port()}\r\ncontent-type: application/yaml\r\n"
        line.sendall((head + f"content-length: {1 << 40}\r\n\r\n").encode())
        self.pour(line, b"x" * 65536, "a body of a terabyte")

    def chunks(self, one):
        line = one.open_line("127.2.0.5")
        head = f"PUT /api/v1/pools/x?why=x HTTP/1.1\r\nhost: 127.0.0.1:{one.port()}\r\ncontent-type: application/yaml\r\n"
        line.sendall((head + "transfer-encoding: chunked\r\n\r\n").encode())
        self.pour(line, b"8000\r\n" + b"x" * 0x8000 + b"\r\n", "chunks without an end")

    def pour(self, line, part, what):
        for n in range(4096):
            line.sendall(part)
            must(n < 4000, f"slow: {what} were taken for {n * len(part)} bytes")


class Smuggle(Case):
    """One request that two programs would read as two: it is refused, and nothing of what follows is carried out."""

    name, finds = "smuggle", ("held",)

    def run(self):
        one = self.target().begin()
        pool = self.pools[0].name
        host = f"host: 127.0.0.1:{one.port()}\r\n"
        hidden = f"POST /api/v1/pools/{pool}/pause HTTP/1.1\r\n{host}content-type: application/json\r\ncontent-length: 13\r\n\r\n"
        hidden += '{"why":"mine"}'
        length = len(hidden)
        shapes = [
            f"GET /ready HTTP/1.1\r\n{host}content-length: {length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
            f"GET /ready HTTP/1.1\r\n{host}content-length: 0\r\ncontent-length: {length}\r\n\r\n{hidden}",
            f"GET /ready HTTP/1.1\r\n{host}content-length: 0, {length}\r\n\r\n{hidden}",
            f"GET /ready HTTP/1.1\r\n{host}transfer-encoding: identity, chunked, identity\r\n\r\n0\r\n\r\n{hidden}",
            f"GET /ready HTTP/1.1\r\n{host}transfer-encoding : chunked\r\n\r\n0\r\n\r\n{hidden}",
            f"GET /ready HTTP/1.1\r\n{host}x: y\r\n content-length: {length}\r\n\r\n{hidden}",
            f"GET /ready HTTP/1.1\r\n{host}content-length: +{length}\r\n\r\n{hidden}",
            f"GET /ready HTTP/1.1\r\n{host}transfer-encoding: chunked\r\n\r\n-1\r\n\r\n{hidden}",
        ]
        for n, shape in enumerate(shapes):
            line = one.open_line(f"127.3.0.{n + 1}")
            line.sendall(shape.encode())
            got, _ = drain(line, 2)
            line.close()
            must(answers(got) <= 1, f"smuggle: {shape[:160]!r} was answered {answers(got)} times: {got[-400:]!r}")
        said = one.ask("/api/v1/audit").json()["items"]
        must(not said, f"smuggle: a hidden request was carried out: {said[:1]}")
        self.pipeline(one, host)
        one.must_act(self.name)
        one.must_stop()
        self.left_alone()

    @staticmethod
    def pipeline(one, host):
        """Many requests on one line at once are answered in order, or it is closed; nothing is answered twice."""
        line = one.open_line("127.3.0.99")
        line.sendall(f"GET /ready HTTP/1.1\r\n{host}\r\n".encode() * 50)
        got, _ = drain(line, 3)
        line.close()
        must(1 <= answers(got) <= 50, f"smuggle: fifty requests on one line got {answers(got)} answers")


CASES = [Idle, Spare, Guess, Forwarded, Slow, Smuggle]

#!/usr/bin/env python3
"""Writes a stream of AG-UI events that looks like a day of an agent: text in small pieces, reasoning,
tool calls with their results, state, and a snapshot of the messages at the end of each run.

    benches/gen_events.py [--sse] MEGABYTES > events.jsonl

The same arguments give the same bytes. Nothing in it contradicts benches/events.declaration.json, so
every event is looked at to the end of the stream.
"""

import json
import random
import sys

WORDS = ("order invoice refund customer the of and was is shipped on a to parcel with total due "
         "carrier status see below \"quoted\" naïve 12.50 € please note that").split()


def text(rng, words):
    return " ".join(rng.choice(WORDS) for _ in range(words))


def run(rng, number):
    stamp = 1_760_000_000_000 + number * 60_000
    ids = {"threadId": f"thread-{number // 4}", "runId": f"run-{number}"}
    yield {"type": "RUN_STARTED", **ids, "timestamp": stamp}
    thought = f"reason-{number}"
    yield {"type": "REASONING_MESSAGE_START", "messageId": thought, "role": "reasoning"}
    yield {"type": "REASONING_MESSAGE_CONTENT", "messageId": thought, "delta": text(rng, 60)}
    yield {"type": "REASONING_MESSAGE_END", "messageId": thought}
    messages = []
    for turn in range(3):
        call, parent = f"call-{number}-{turn}", f"message-{number}-{turn}"
        yield {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "orders.lookup",
               "parentMessageId": parent}
        for _ in range(8):
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": text(rng, 2)}
        yield {"type": "TOOL_CALL_END", "toolCallId": call}
        rows = [{"order": rng.randrange(10**6), "note": text(rng, 12), "paid": rng.random() < 0.5}
                for _ in range(12)]
        yield {"type": "TOOL_CALL_RESULT", "messageId": f"result-{call}", "toolCallId": call,
               "content": json.dumps(rows, ensure_ascii=False), "role": "tool"}
        yield {"type": "STATE_DELTA", "delta": [
            {"op": "replace", "path": f"/orders/{i}/note", "value": text(rng, 6)} for i in range(4)]}
        yield {"type": "TEXT_MESSAGE_START", "messageId": parent, "role": "assistant"}
        pieces = [text(rng, rng.randrange(1, 5)) + " " for _ in range(60)]
        for piece in pieces:
            yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": parent, "delta": piece}
        yield {"type": "TEXT_MESSAGE_END", "messageId": parent}
        messages.append({"id": parent, "role": "assistant", "content": "".join(pieces)})
    yield {"type": "STATE_SNAPSHOT", "snapshot": {"orders": [
        {"id": i, "total": round(rng.random() * 100, 2), "note": text(rng, 8)} for i in range(20)]}}
    yield {"type": "MESSAGES_SNAPSHOT", "messages": messages}
    yield {"type": "RUN_FINISHED", **ids, "timestamp": stamp + 20_000, "outcome": {"type": "success"}}


def main():
    arguments = [a for a in sys.argv[1:] if a != "--sse"]
    before, after = ("data: ", "\n\n") if "--sse" in sys.argv else ("", "\n")
    room = int(arguments[0]) * 1_000_000
    # A thousand runs are enough to be no pattern; the stream repeats them.
    rng = random.Random(5)
    block = "".join(before + json.dumps(event, ensure_ascii=False, separators=(",", ":")) + after
                    for number in range(1000) for event in run(rng, number)).encode()
    out = sys.stdout.buffer
    while room > 0:
        out.write(block)
        room -= len(block)


main()

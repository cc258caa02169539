"""Files as other programs write them, made up here after their published shapes; and how many messages are in each."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

WORDS = st.one_of(
    st.text(min_size=1, max_size=40),
    st.sampled_from([
        "", "  ", "\n", "Straße 🚲 zum See", "会議は三時です", "a\r\nb\n\n  c", "<seq=3, time=x> no", "- item",
        "\x00\x0b", "half \ud83d of a pair", "[link](x) # tag", "```\ncode\n```", "NaN", "\u2028line\u2029",
        "a\\u0000\"'", "---\ntitle: x\n---\n", "# heading\n\n- <event=forget, seq=1>\n~~~\n- <seq=2> in a fence",
        "שלום \u202eעולם\u202c", "مرحبا", "<<<<<<< HEAD", "👩‍👩‍👧🇳🇴", "\x1b[31mred\x07", "\ufeffmark",
        "| a |\n|---|\n| b |", "9" * 400, "a\r", " \u3000 x",
    ]),
)  # fmt: skip
TITLES = st.one_of(st.none(), st.just(""), st.text(max_size=120), st.sampled_from(['Boat, berth <12> "Terna"', "旅行"]))
SECONDS = st.one_of(st.none(), st.just(float("nan")), st.floats(1.5e9, 1.8e9), st.just(-1e300), st.just("soon"))


@dataclass(frozen=True)
class Made:
    """A file, how many messages are in it, and the words of those that a person would call part of the conversation."""

    content: bytes
    messages: int
    said: tuple[str, ...] = ()


def tidy(text: str) -> str:
    """Words as CURRENT can hold them."""
    return text.replace("\r\n", "\n").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def dumped(value: Any, compact: bool = True) -> bytes:
    """JSON as exports have it: ASCII, NaN and half pairs included."""
    return json.dumps(value, separators=(",", ":") if compact else None, indent=None if compact else 1).encode("ascii")


def lines(rows: list[Any]) -> bytes:
    """JSON lines."""
    return b"".join(dumped(row) + b"\n" for row in rows)


# ChatGPT

KINDS = "user user assistant assistant system tool hidden thoughts call instructions bio null image voice".split()
KINDS += ["odd role", "odd content", "painted"]


def chatgpt_message(kind: str, text: str, ident: str, time: Any) -> dict[str, Any] | None:
    """One message of a kind."""
    by_users = dict.fromkeys(["user", "image", "voice", "instructions"], "user")
    role = {**by_users, "system": "system", "tool": "tool", "painted": "tool", "odd role": "oracle"}.get(
        kind, "assistant"
    )
    content: Any = {"content_type": "text", "parts": [text]}
    metadata: dict[str, Any] = {}
    if kind == "null":
        return None
    if kind == "thoughts":
        content = {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": text}]}
    elif kind == "image":
        pointer = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "width": 3}
        content = {"content_type": "multimodal_text", "parts": [pointer, text]}
        metadata = {"attachments": [{"id": "file_1", "name": "berth.jpg", "mimeType": "image/jpeg"}]}
    elif kind == "voice":
        spoken = {"content_type": "audio_transcription", "text": text, "direction": "in"}
        content = {"content_type": "multimodal_text", "parts": [spoken, {"content_type": "audio_asset_pointer"}]}
    elif kind == "painted":
        pointer = {"content_type": "image_asset_pointer", "metadata": {"dalle": {"prompt": "a boat", "seed": 1}}}
        content = {"content_type": "multimodal_text", "parts": [pointer]}
    elif kind == "odd content":
        content = "bare"
    elif kind == "instructions":
        content = {"content_type": "user_editable_context", "user_profile": text}
        metadata = {"is_user_system_message": True, "is_visually_hidden_from_conversation": True}
    elif kind == "hidden":
        metadata = {"is_visually_hidden_from_conversation": True}
    recipient = {"call": "python", "bio": "bio"}.get(kind, "all")
    return {
        "id": ident, "author": {"role": role, "name": None, "metadata": {}}, "create_time": time, "update_time": None,
        "content": content, "status": "finished_successfully", "end_turn": True, "weight": 1.0, "metadata": metadata,
        "recipient": recipient, "channel": None,
    }  # fmt: skip


def chatgpt_said(kind: str, text: str) -> str:
    """The words that should come of a message of a kind; "" for none."""
    if kind == "image":
        return "\n\n".join(piece for piece in (text, "[attached: berth.jpg]") if piece.strip())
    if kind == "painted":
        return "[attached: image: a boat]"
    if kind == "voice":
        return "\n\n".join(piece for piece in (text, "[attached: audio]") if piece.strip())
    return text if kind in ("user", "assistant", "bio") and text.strip() else ""


@st.composite
def chatgpt(draw: st.DrawFn) -> Made:
    """`conversations.json` with branches, nodes without a message, and every kind of message."""
    conversations: list[Any] = []
    messages = 0
    said: list[str] = []
    for at in range(draw(st.integers(0, 3))):
        mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
        names = ["root"]
        for number in range(draw(st.integers(0, 7))):
            kind, text = draw(st.sampled_from(KINDS)), draw(WORDS)
            parent = draw(st.sampled_from([names[-1], names[-1], *names]))
            name = f"n{at}-{number}"
            message = chatgpt_message(kind, text, name, draw(SECONDS))
            mapping[name] = {"id": name, "message": message, "parent": parent, "children": []}
            mapping[parent]["children"].append(name)
            names.append(name)
            messages += message is not None
            words = chatgpt_said(kind, text) if message is not None else ""
            said += [tidy(words)] if words else []
        current = draw(st.sampled_from([names[-1], None, "gone", *names]))
        conversations.append({
            "title": draw(TITLES), "create_time": draw(SECONDS), "update_time": 1.7e9, "mapping": mapping,
            "moderation_results": [], "current_node": current, "conversation_id": f"c{at}", "id": f"c{at}",
        })  # fmt: skip
    if not conversations:
        return Made(b'[{"title": "t", "mapping": {"root": {"id": "root", "message": null, "parent": null}}}]', 0)
    value = draw(st.sampled_from([conversations, {"conversations": conversations}]))
    return Made(dumped(value, draw(st.booleans())), messages, tuple(said))


# Claude


@st.composite
def claude(draw: st.DrawFn) -> Made:
    """`conversations.json` with blocks, attachments and, in newer exports, edits."""
    conversations = []
    messages = 0
    said: list[str] = []
    for at in range(draw(st.integers(1, 3))):
        rows: list[Any] = []
        has_tree = draw(st.booleans())
        names = ["00000000-0000-4000-8000-000000000000"]
        for number in range(draw(st.integers(0, 6))):
            text, name = draw(WORDS), f"m{at}-{number}"
            kind = draw(st.sampled_from(["text", "text", "tool", "thinking", "old", "file", "odd", "none"]))
            blocks = {
                "text": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text, "citations": []}],
                "file": [{"type": "text", "text": text}],
                "tool": [{"type": "tool_use", "name": "web", "input": {}}, {"type": "tool_result", "content": []}],
                "thinking": [{"type": "thinking", "thinking": text}],
            }.get(kind, [])
            row: Any = {
                "uuid": name, "text": text, "content": blocks, "sender": draw(st.sampled_from(["human", "assistant"])),
                "created_at": draw(st.sampled_from(["2026-05-01T09:00:00.123456Z", "soon", None])),
                "updated_at": "2026-05-01T09:00:00Z", "attachments": [], "files": [],
            }  # fmt: skip
            if kind == "file":
                row["files"] = [{"file_name": "berths.pdf"}]
            if kind == "odd":
                row["sender"] = "oracle"
            if kind == "none":
                row = None
            if has_tree and row is not None:
                row["parent_message_uuid"] = draw(st.sampled_from([names[-1], names[-1], *names]))
                names.append(name)
            rows.append(row)
            messages += 1
            words = {"text": text, "old": text, "file": "\n\n".join(
                piece for piece in (text, "[attached: berths.pdf]") if piece.strip())}.get(kind, "")  # fmt: skip
            said += [tidy(words)] if words.strip() else []
            if kind == "file" and text.strip():
                row["attachments"] += [{"file_name": "", "extracted_content": text}, {"file_name": "empty.txt"}]
                messages += 1
                said.append(tidy(text))
                said[-2] = tidy(f"{text}\n\n[attached: pasted text, empty.txt, berths.pdf]")
        conversations.append({
            "uuid": f"c{at}", "name": draw(TITLES), "summary": "", "created_at": "2026-05-01T08:00:00Z",
            "updated_at": "2026-05-02T08:00:00Z", "account": {"uuid": "a"}, "chat_messages": rows,
        })  # fmt: skip
    return Made(dumped(conversations, draw(st.booleans())), messages, tuple(said))


# Sessions of agents


@st.composite
def claude_code(draw: st.DrawFn) -> Made:
    """A session of Claude Code."""
    rows: list[Any] = [{"type": "summary", "summary": "The boat", "leafUuid": "x"}]
    said: list[str] = []
    for number in range(draw(st.integers(0, 8))):
        text = draw(WORDS)
        kind = draw(st.sampled_from("user assistant tool result meta side snapshot command odd thinking image".split()))
        base = {"parentUuid": None, "isSidechain": kind == "side", "sessionId": "s1", "uuid": f"u{number}",
                "timestamp": "2026-05-01T09:00:00.000Z", "cwd": "/home/maya/boat", "version": "2.1.0"}  # fmt: skip
        content: Any = [{"type": "text", "text": text}]
        role = "assistant" if kind in ("assistant", "tool", "thinking") else "user"
        if kind in ("user", "side"):
            content = text
        elif kind == "tool":
            content = [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": text}}]
        elif kind == "thinking":
            content = [{"type": "thinking", "thinking": text, "signature": "x"}]
        elif kind == "result":
            content = [{"type": "tool_result", "tool_use_id": "t", "content": text}]
        elif kind == "command":
            content = "<command-name>/clear</command-name>"
        elif kind == "image":
            content = [{"type": "image", "source": {"type": "base64", "data": "AAAA"}}, *content]
        row: Any = {**base, "type": role, "message": {"role": role, "content": content}}
        if kind == "meta":
            row["isMeta"] = True
        if kind == "snapshot":
            row = {"type": "file-history-snapshot", "messageId": "u", "snapshot": {}}
        if kind == "odd":
            row = [text]
        rows.append(row)
        words = text if kind in ("user", "assistant") else ""
        if kind == "image":
            words = "\n\n".join(piece for piece in (text, "[attached: image]") if piece.strip())
        said += [tidy(words)] if words.strip() else []
    return Made(lines(rows), len(rows), tuple(said))


@st.composite
def codex(draw: st.DrawFn) -> Made:
    """A session of Codex, with an envelope about each line or, as at first, without."""
    has_envelope = draw(st.booleans())
    meta = {"id": "s1", "timestamp": "2026-05-01T09:00:00.000Z", "cwd": "/home/maya/boat", "instructions": None}
    old = {"id": "s1", "timestamp": "2026-05-01T09:00:00.000Z", "instructions": None}
    rows: list[Any] = [
        {"timestamp": meta["timestamp"], "type": "session_meta", "payload": meta} if has_envelope else old
    ]
    said: list[str] = []
    for _ in range(draw(st.integers(0, 8))):
        text = draw(WORDS)
        kind = draw(st.sampled_from(["user", "assistant", "developer", "context", "call", "reasoning", "odd"]))
        role = {"context": "user", "odd": "oracle"}.get(kind, kind)
        words = "<environment_context>\n  <cwd>/x</cwd>" if kind == "context" else text
        part = {"type": "output_text" if role == "assistant" else "input_text", "text": words}
        payload: Any = {"type": "message", "role": role, "content": [part]}
        if kind == "call":
            payload = {"type": "function_call", "name": "shell", "arguments": text, "call_id": "c"}
        if kind == "reasoning":
            payload = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
        envelope = {"timestamp": "2026-05-01T09:01:00.000Z", "type": "response_item", "payload": payload}
        rows.append(envelope if has_envelope else payload)
        if has_envelope and kind == "user":
            rows.append({"timestamp": "x", "type": "event_msg", "payload": {"type": "user_message", "message": text}})
        said += [tidy(text)] if kind in ("user", "assistant") and text.strip() else []
    return Made(lines(rows), len(rows), tuple(said))


# Memories


@st.composite
def mem0(draw: st.DrawFn) -> Made:
    """What mem0's `get_all` gives."""
    rows: list[Any] = [{"id": "first", "memory": "Maya works at Nordlys", "hash": "h", "created_at": "2026-05-01"}]
    said = ["Maya works at Nordlys"]
    for number in range(draw(st.integers(0, 6))):
        text: Any = draw(st.one_of(WORDS, st.none(), st.just(3)))
        about = draw(st.sampled_from([None, {}, {"topic": "boats, <x>", "seq": "9", "time": "2026", "bad key!": "x"}]))
        rows.append({
            "id": f"i{number}", "memory": text, "hash": "h", "metadata": about, "user_id": "maya",
            "categories": ["work"], "created_at": "2023-02-25T23:57:00.108347-07:00", "updated_at": None,
        })  # fmt: skip
        said += [tidy(text)] if isinstance(text, str) and text.strip() else []
    value = draw(st.sampled_from([rows, {"results": rows}, {"count": len(rows), "next": None, "results": rows}]))
    return Made(dumped(value, draw(st.booleans())), len(rows), tuple(said))


@st.composite
def mcp_memory(draw: st.DrawFn) -> Made:
    """`memory.jsonl` of the MCP reference memory server."""
    rows: list[Any] = [{"type": "entity", "name": "Maya", "entityType": "person", "observations": ["works at Nordlys"]}]
    messages, said = 1, ["Maya: works at Nordlys"]
    for number in range(draw(st.integers(0, 5))):
        name = f"E{number}"
        if draw(st.booleans()):
            rows.append(
                {"type": "relation", "from": name, "to": "Maya", "relationType": draw(st.sampled_from(["knows", ""]))}
            )
            messages += 1
            said += [f"{name} knows Maya"] if rows[-1]["relationType"] else []
            continue
        observed: list[Any] = draw(st.lists(st.one_of(WORDS, st.just(7)), max_size=3, unique=True))
        rows.append({"type": "entity", "name": name, "entityType": "boat", "observations": observed})
        messages += max(1, len(observed))
        said += [f"{name}: {tidy(text)}" for text in observed if isinstance(text, str) and text.strip()]
        said += [] if observed else [f"{name} (boat)"]
    return Made(lines(rows), messages, tuple(said))


# Data sets


@st.composite
def locomo(draw: st.DrawFn) -> Made:
    """LoCoMo: samples with sessions, questions before them."""
    samples = []
    messages, said = 0, []
    for at in range(draw(st.integers(1, 2))):
        talk: dict[str, Any] = {"speaker_a": "Ann", "speaker_b": "Ben"}
        for number in range(1, draw(st.integers(1, 3)) + 1):
            turns: list[Any] = []
            for turn in range(draw(st.integers(0, 4))):
                text = draw(WORDS)
                one: Any = {
                    "speaker": draw(st.sampled_from(["Ann", "Ben"])),
                    "dia_id": f"D{number}:{turn}",
                    "text": text,
                }
                if draw(st.booleans()):
                    one["blip_caption"] = "a photo of a boat"
                    text = "\n\n".join(piece for piece in (text, "[attached: a photo of a boat]") if piece.strip())
                if draw(st.integers(0, 9)) == 0:
                    one, text = None, ""
                turns.append(one)
                said += [tidy(text)] if text.strip() else []
            messages += len(turns)
            talk[f"session_{number}_date_time"] = draw(st.sampled_from(["1:56 pm on 8 May, 2023", "whenever"]))
            talk[f"session_{number}"] = turns
        questions = [{"question": "Where?", "answer": "Here", "evidence": ["D1:1"], "category": 4}]
        samples.append({"qa": questions, "conversation": talk, "sample_id": f"conv-{at}"})
    return Made(dumped(samples, draw(st.booleans())), messages, tuple(said))


@st.composite
def longmemeval(draw: st.DrawFn) -> Made:
    """LongMemEval: questions with sessions, some of which two questions share."""
    instances = []
    messages, said = 0, []
    shared = [{"role": "user", "content": "Terna has berth 12."}]
    for at in range(draw(st.integers(1, 3))):
        sessions: list[Any] = [shared]
        ids, dates = ["shared"], ["2023/05/20 (Sat) 02:21"]
        for number in range(draw(st.integers(0, 3))):
            turns: list[Any] = []
            for role in ("user", "assistant")[: draw(st.integers(0, 2))]:
                text: Any = draw(st.one_of(WORDS, st.none()))
                turns.append({"role": role, "content": text, "has_answer": False})
                said += [tidy(text)] if isinstance(text, str) and text.strip() else []
            sessions.append(turns)
            ids.append(f"s{at}-{number}")
            dates.append(draw(st.sampled_from(["2023/05/21 (Sun) 02:21", "never"])))
        messages += sum(map(len, sessions))
        instances.append({
            "question_id": f"q{at}", "question_type": "multi-session", "question": "?", "answer": "!",
            "question_date": "2023/05/30 (Tue) 23:40", "haystack_dates": dates, "haystack_session_ids": ids,
            "haystack_sessions": sessions, "answer_session_ids": [],
        })  # fmt: skip
    return Made(dumped(instances, draw(st.booleans())), messages, ("Terna has berth 12.", *said))


# Messengers


def cut_up(draw: st.DrawFn, text: str) -> Any:
    """A text as Telegram has it: whole, or cut where something is bold."""
    at = draw(st.integers(0, len(text)))
    return draw(st.sampled_from([text, [text[:at], {"type": "bold", "text": text[at:]}]]))


@st.composite
def telegram(draw: st.DrawFn) -> Made:
    """`result.json` of one chat, or of the whole account."""
    chats: list[Any] = []
    messages = 0
    said: list[str] = []
    for at in range(draw(st.integers(1, 3))):
        rows: list[Any] = []
        for number in range(draw(st.integers(0, 6))):
            kind = draw(st.sampled_from("text text file sticker photo poll place service gone odd edited".split()))
            text = draw(WORDS)
            row: Any = {
                "id": number, "type": "message", "date": "2026-05-01T11:00:00", "date_unixtime": "1777626000",
                "from": draw(st.sampled_from(["Ann", "Ben 🚲", None])), "from_id": "user1", "text": cut_up(draw, text),
                "text_entities": [{"type": "plain", "text": text}],
            }  # fmt: skip
            more: dict[str, Any] = {
                "file": {"file": "files/berth plan.pdf", "mime_type": "application/pdf"},
                "sticker": {"file": "(File not included.)", "media_type": "sticker", "sticker_emoji": "⛵"},
                "photo": {"photo": "(File not included.)", "width": 3, "height": 4},
                "poll": {"poll": {"question": "When?", "answers": [{"text": "now"}, {"text": "never"}]}},
                "place": {"location_information": {"latitude": 60.3, "longitude": 5.3}},
                "service": {"type": "service", "actor": "Ann", "action": "phone_call"},
                "edited": {"edited": "2026-05-02T11:00:00", "edited_unixtime": "1777712400"},
                "odd": {"type": "riddle"},
            }.get(kind, {})
            row |= more
            rows.append(None if kind == "gone" else row)
            messages += 1
            names = {"file": "berth plan.pdf", "sticker": "sticker ⛵", "photo": "photo",
                     "poll": "poll: When? (now / never)", "place": "place 60.3, 5.3"}  # fmt: skip
            attached = f"[attached: {names[kind]}]" if kind in names else ""
            words = "\n\n".join(piece for piece in (text, attached) if piece.strip())
            said += [tidy(words)] if kind not in ("service", "gone", "odd") and words.strip() else []
        chats.append({"name": draw(TITLES), "type": "personal_chat", "id": at, "messages": rows})
    last = {"id": 1, "type": "message", "date": "2026-05-01", "from": "Ann", "from_id": "user1", "text": "told"}
    chats.append({"name": "told by", "type": "personal_chat", "id": 99, "messages": [last]})
    account = {"about": "…", "personal_information": {}, "contacts": {"list": []},
               "chats": {"about": "…", "list": chats}, "left_chats": {"about": "…", "list": []}}  # fmt: skip
    if draw(st.booleans()):
        return Made(dumped(account, draw(st.booleans())), messages + 1, (*said, "told"))
    return Made(dumped(chats[-1], draw(st.booleans())), 1, ("told",))


@st.composite
def slack(draw: st.DrawFn) -> Made:
    """One day of a channel."""
    rows: list[Any] = [{"type": "message", "user": "U1", "text": "hi", "ts": "1777626000.000100"}]
    said = ["hi"]
    for number in range(draw(st.integers(0, 7))):
        text = draw(WORDS.filter(lambda text: not set("<&") & set(text)))
        kind = draw(st.sampled_from("text text join bot file gone odd card edited".split()))
        row: Any = {"type": "message", "user": "U2", "text": text, "ts": f"{1_777_626_001 + number}.000200",
                    "user_profile": {"real_name": "Ben Ñ"}, "blocks": []}  # fmt: skip
        row |= {
            "join": {"subtype": "channel_join", "text": "<@U2> has joined the channel"},
            "bot": {"subtype": "bot_message", "bot_id": "B1", "username": "weather"},
            "file": {"files": [{"id": "F1", "name": "berth.pdf", "title": "Berths"}]},
            "gone": {"subtype": "tombstone", "text": "This message was deleted."},
            "card": {"text": "", "attachments": [{"fallback": "[no preview]", "text": text}]},
            "edited": {"edited": {"user": "U2", "ts": "1777700000.000000"}, "thread_ts": "1777626000.000100"},
            "odd": {"type": "riddle"},
        }.get(kind, {})
        rows.append(row)
        words = {"join": "", "gone": "", "odd": "", "card": text or "[no preview]"}.get(kind, text)
        if kind == "file":
            words = "\n\n".join(piece for piece in (text, "[attached: Berths]") if piece.strip())
        said += [tidy(words)] if words.strip() else []
    return Made(dumped(rows, draw(st.booleans())), len(rows), tuple(said))


# Text

PLAIN = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Zl", "Zp", "Cs"]), min_size=1, max_size=30
)
SPOKEN = st.one_of(
    PLAIN, st.sampled_from(["<Media omitted>", "This message was deleted", "Straße 🚲", "会議は三時です", "10:30?"])
)


@st.composite
def whatsapp(draw: st.DrawFn) -> Made:
    """A chat as WhatsApp exports it on Android or on an iPhone, with lines that go on and lines of the program."""
    is_iphone = draw(st.booleans())
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    rows: list[str] = []
    messages, said = 0, []
    for number in range(draw(st.integers(3, 8))):
        kind = draw(st.sampled_from(["said", "said", "said", "two lines", "system"])) if number > 1 else "said"
        stamp = f"[{13 + number}/05/26, 09:1{number}:33]" if is_iphone else f"{13 + number}/05/2026, 09:1{number} -"
        text = draw(SPOKEN).strip() or "x"
        body = f"{draw(st.sampled_from(['Ann', 'Ben Ñ', '+47 900 00 000']))}: {text}"
        if kind == "system":
            body = "Messages and calls are end-to-end encrypted. No one outside of this chat can read them."
        mark = "\u200e" if is_iphone and draw(st.booleans()) else ""
        rows.append(f"{mark}{stamp} {body}")
        messages += 1
        if kind == "two lines":
            rows.append("and on")
            text += "\nand on"
        if kind != "system" and text not in ("<Media omitted>", "This message was deleted"):
            said.append(text)
    bom = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return Made(bom + ending.join([*rows, ""]).encode(), messages, tuple(said))


@st.composite
def notes(draw: st.DrawFn) -> Made:
    """A Markdown note with front matter, bullets and paragraphs."""
    rows: list[str] = []
    if draw(st.booleans()):
        rows += ["---", "tags: [boat, harbour]", "date: 2026-05-01", "---"]
    said: list[str] = []
    for _ in range(draw(st.integers(0, 6))):
        text = draw(st.text("abcdefghij ÆØÅ会🚲[]|", min_size=1, max_size=20)).strip() or "x"
        kind = draw(st.sampled_from(["item", "paragraph", "nested", "heading"]))
        if kind == "heading":
            rows += ["", f"## {text}", ""]
        elif kind == "paragraph":
            rows += ["", text, "goes on", ""]
            said.append(f"{text}\ngoes on")
        elif kind == "nested":
            rows += ["", f"- {text}", "  - below [[Maya|her]]", ""]
            said.append(f"{text}\n  - below [[Maya|her]]")
        else:
            rows += ["", f"* {text}", ""]
            said.append(text)
    return Made(draw(st.sampled_from(["\n", "\r\n"])).join([*rows, ""]).encode(), len(said), tuple(said))


@st.composite
def paper(draw: st.DrawFn) -> Made:
    """A topic document of the paper's own package."""
    head = [
        "---",
        "id: 2025-01-15_14-30-00_abc123",
        "summary: s",
        "token_count: 5",
        "update_log: []",
        "aux: {}",
        "---",
        "# Boats",
    ]
    said = []
    for number in range(draw(st.integers(1, 6))):
        text = draw(st.text("abcdefghij ÆØÅ会🚲", min_size=1, max_size=20)).strip() or "x"
        time = draw(st.sampled_from(["empty", "2023-05-07", "8 May 2023", "someday"]))
        head.append(f"- <seq={1785398400 + number},time={time},source=AI> {text}")
        said.append(text)
    return Made("\n".join([*head, ""]).encode(), len(said), tuple(said))


SHAPES: dict[str, tuple[str, st.SearchStrategy[Made]]] = {
    "chatgpt": ("conversations.json", chatgpt()),
    "claude": ("conversations.json", claude()),
    "claude-code": ("session.jsonl", claude_code()),
    "codex": ("rollout-1.jsonl", codex()),
    "telegram": ("result.json", telegram()),
    "slack": ("2026-05-01.json", slack()),
    "mem0": ("memories.json", mem0()),
    "mcp-memory": ("memory.jsonl", mcp_memory()),
    "locomo": ("locomo.json", locomo()),
    "longmemeval": ("longmemeval.json", longmemeval()),
    "chat": ("WhatsApp Chat with Ben.txt", whatsapp()),
    "notes": ("2026-05-01.md", notes()),
    "paper": ("2025-01-15_14-30-00_abc123.md", paper()),
}
"""For each format the name of a file and what may stand in it."""


# What a file was before it grew


def earlier(name: str, content: bytes, left: int) -> bytes:
    """The file as it was when it had only the first `left` of its messages, or a few more."""
    if name in ("claude-code", "codex", "mcp-memory"):
        return b"".join(content.splitlines(keepends=True)[: left + 1])
    if name in ("chat", "notes", "paper"):
        text = content.decode()
        begins = {"chat": r"(?m)^\u200e?\[?[0-9]+/05/", "notes": r"\n\r?\n(?=[^ ])", "paper": r"(?m)^- <"}[name]
        starts = [match.start() for match in re.finditer(begins, text)]
        return (text[: starts[left + 3]] if left + 3 < len(starts) else text).encode()
    value = json.loads(content)
    budget = [left + 1]
    return dumped(shorter(value, budget) if name != "longmemeval" else value[: left + 1])


GROWING = ("chat_messages", "messages", "results")


def shorter(value: Any, budget: list[int]) -> Any:
    """JSON in which no more than so many of the records that are added in time stand; what is about them stays."""
    if isinstance(value, list):
        kept = []
        for one in value:
            if not isinstance(one, dict) or not {"mapping", *GROWING, "conversation"} & one.keys():
                if budget[0] <= 0:
                    break
                budget[0] -= 1
                kept.append(one)
            else:
                kept.append(shorter(one, budget))
        return kept
    if not isinstance(value, dict):
        return value
    inside = {"conversations", "chats", "list", "conversation", *GROWING}
    cut = {
        key: shorter(one, budget) if key in inside or (key.startswith("session_") and isinstance(one, list)) else one
        for key, one in value.items()
    }
    if isinstance(value.get("mapping"), dict):
        nodes = list(value["mapping"].items())[: max(1, budget[0])]
        budget[0] -= len(nodes)
        cut["mapping"] = dict(nodes)
    return cut

import { create, type DescMethod, toBinary } from "@bufbuild/protobuf";
import { createContextValues } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { ReadRequestSchema, ResourceService } from "@plinth/proto";
import { idOf, TypeRegistry } from "@plinth/resource";
import { FakeClock } from "@plinth/runtime/testing";
import { expect, it } from "vitest";
import { Artist } from "../../testdata/music.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { EventLoopTurns } from "../limits/event-loop-turns.ts";
import { FieldLimits } from "./field-limits.ts";
import { IncompleteMessages } from "./incomplete-messages.ts";
import { RequestMeter } from "./request-meter.ts";

const message = toBinary(
	ReadRequestSchema,
	create(ReadRequestSchema, { id: idOf(Artist, "joni") }),
);

/** A body whose bytes and end come when the test says so, and the turns that were taken for it. */
function start(header: Record<string, string>, method: DescMethod = ResourceService.method.read) {
	let turns = 0;
	class Counted extends EventLoopTurns {
		override take(...args: Parameters<EventLoopTurns["take"]>): Promise<void> | undefined {
			turns += 1;
			return super.take(...args);
		}
	}
	const incomplete = new IncompleteMessages(4_000_000, 1_000_000, new FakeClock());
	const clock = new FakeClock();
	const counted = new Counted(clock);
	const meter = new RequestMeter({
		fields: new FieldLimits({
			registry: new TypeRegistry([Artist]).messages(),
			messageFields: 1_000,
			methods: new Map(),
		}),
		messageBytes: () => 1_000_000,
		turns: counted,
		incomplete,
		onRefused: () => {},
	});
	const refused = new AbortController();
	const call = new AbortController();
	let wake = () => {};
	const pieces: (Uint8Array | undefined)[] = [];
	async function* body() {
		for (;;) {
			while (pieces.length === 0) {
				await new Promise<void>((resolve) => {
					wake = resolve;
				});
			}
			const piece = pieces.shift();
			if (piece === undefined) {
				return;
			}
			yield piece;
		}
	}
	const metered = meter.bodyOf({
		method,
		header: new Headers(header),
		body: body(),
		exchange: {
			usage: {},
			body: { pause: () => {}, resume: () => {}, failed: refused.signal },
			refuse: () => refused.abort(new Error("refused")),
			incomplete: undefined,
		},
		contextValues: createContextValues(),
		signal: call.signal,
	});
	const received: Uint8Array[] = [];
	const ended = (async () => {
		for await (const chunk of metered) {
			received.push(chunk);
		}
	})();
	/** Somebody else's turn that does not end for a while. */
	const occupy = () => {
		counted.run({ caller: "slow", connection: {} }, () => clock.advance(100));
		counted.run({ caller: "other", connection: {} }, () => {});
	};
	return {
		occupy,
		turns: () => turns,
		incomplete,
		call,
		ended,
		received: () => Buffer.concat(received),
		chunks: () => received.map(({ byteLength }) => byteLength),
		send: async (...sent: (Uint8Array | undefined)[]) => {
			pieces.push(...sent);
			wake();
			await new Promise((resolve) => setImmediate(resolve));
		},
	};
}

it.each([
	["with a length", { "content-type": "application/proto", "content-length": `${message.length}` }],
	["without a length", { "content-type": "application/proto" }],
])("a message %s takes its turn when the request has ended", async (_name, header) => {
	const body = start(header);
	await body.send(message.subarray(0, 1));
	await body.send(message.subarray(1));
	expect(body.turns()).toBe(0);
	await body.send(undefined);
	await body.ended;
	expect(body.turns()).toBe(1);
	expect(body.received()).toEqual(Buffer.from(message));
});

it("a message of gRPC takes its turn when the request has ended, and not when it is complete", async () => {
	const body = start({ "content-type": "application/grpc" });
	const enveloped = encodeEnvelope(0, message);
	await body.send(enveloped);
	expect(body.turns()).toBe(0);
	expect(body.received()).toHaveLength(0);
	await body.send(undefined);
	await body.ended;
	expect(body.turns()).toBe(1);
	expect(body.received()).toEqual(Buffer.from(enveloped));
});

it.each([1, 3])(
	"a complete message in %i pieces counts until its request has ended",
	async (pieces) => {
		const body = start({ "content-type": "application/grpc" });
		const enveloped = encodeEnvelope(0, new Uint8Array(100_000));
		const size = Math.ceil(enveloped.length / pieces);
		for (let at = 0; at < enveloped.length; at += size) {
			await body.send(enveloped.subarray(at, at + size));
		}
		expect(body.incomplete.bytes).toBeGreaterThanOrEqual(100_000);
		await body.send(undefined);
		await body.ended;
		expect(body.incomplete.bytes).toBe(0);
	},
);

it.each([
	["in a chunk of its own", false],
	["with the first one", true],
])("a second message is refused, and not collected: %s", async (_name, isTogether) => {
	const body = start({ "content-type": "application/grpc" });
	const enveloped = encodeEnvelope(0, message);
	const part = enveloped.subarray(0, 8);
	const ended = expect(body.ended).rejects.toThrow("more than one message");
	if (isTogether) {
		await body.send(Buffer.concat([enveloped, part]));
	} else {
		await body.send(enveloped, part);
	}
	await ended;
	expect(body.received()).toHaveLength(0);
	expect(body.incomplete.bytes).toBe(0);
});

it("messages of a client stream take a turn as they arrive, and one for each 64 of many", async () => {
	const { serverReflectionInfo } = ServerReflection.method;
	const body = start({ "content-type": "application/grpc" }, serverReflectionInfo);
	const enveloped = encodeEnvelope(0, message);
	await body.send(enveloped.subarray(0, 8));
	expect(body.turns()).toBe(0);
	await body.send(enveloped.subarray(8));
	expect(body.turns()).toBe(1);
	// Empty ones.
	await body.send(new Uint8Array(5 * 200));
	await expect.poll(() => body.chunks().slice(2)).toEqual([320, 320, 320, 40]);
	expect(body.turns()).toBe(5);
	await body.send(undefined);
	await body.ended;
	expect(body.turns()).toBe(5);
	expect(body.received()).toHaveLength(enveloped.length + 1_000);
	expect(body.incomplete.bytes).toBe(0);
});

it("a call that ends while it waits for its turn never gets its message", async () => {
	const body = start({ "content-type": "application/proto" });
	body.occupy();
	await body.send(message, undefined);
	expect(body.turns()).toBe(1);
	const ended = expect(body.ended).rejects.toThrow("reset");
	body.call.abort(new Error("reset"));
	await ended;
	expect(body.received()).toHaveLength(0);
});

it("a message that waits for its turn can be dropped like one that has not arrived", async () => {
	const body = start({ "content-type": "application/grpc" });
	body.occupy();
	const large = encodeEnvelope(0, new Uint8Array(60_000));
	await body.send(large.subarray(0, 30_000), large.subarray(30_000), undefined);
	expect(body.turns()).toBe(1);
	expect(body.incomplete.bytes).toBeGreaterThanOrEqual(60_000);
	const ended = expect(body.ended).rejects.toThrow("refused");
	// Another one brings the first bytes of all to more than their quarter.
	const other = {
		usage: {},
		body: { pause: () => {}, resume: () => {}, failed: new AbortController().signal },
		refuse: () => {},
	};
	for (let each = 0; each < 18; each += 1) {
		body.incomplete.begin({ ...other, usage: {} }).update(58_000, 58_000, 1_000_000);
	}
	await ended;
});

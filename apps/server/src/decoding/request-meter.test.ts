import { create, toBinary } from "@bufbuild/protobuf";
import { createContextValues } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { ReadRequestSchema, ResourceService } from "@plinth/proto";
import { idOf, TypeRegistry } from "@plinth/resource";
import { FakeClock } from "@plinth/runtime/testing";
import { expect, it } from "vitest";
import { Artist } from "../../testdata/music.ts";
import { EventLoopTurns } from "../limits/event-loop-turns.ts";
import { FieldLimits } from "./field-limits.ts";
import { IncompleteMessages } from "./incomplete-messages.ts";
import { RequestMeter } from "./request-meter.ts";

const message = toBinary(
	ReadRequestSchema,
	create(ReadRequestSchema, { id: idOf(Artist, "joni") }),
);

/** A body whose bytes and end come when the test says so, and the turns that were taken for it. */
function start(header: Record<string, string>) {
	const sizes: number[] = [];
	class Counted extends EventLoopTurns {
		override take(...args: Parameters<EventLoopTurns["take"]>): Promise<void> | undefined {
			sizes.push(args[1]);
			return super.take(...args);
		}
	}
	const incomplete = new IncompleteMessages(4_000_000, 1_000_000, new FakeClock());
	const meter = new RequestMeter({
		fields: new FieldLimits({
			registry: new TypeRegistry([Artist]).messages(),
			messageFields: 1_000,
			methods: new Map(),
		}),
		messageBytes: () => 1_000_000,
		turns: new Counted(new FakeClock()),
		incomplete,
		onRefused: () => {},
	});
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
		method: ResourceService.method.read,
		header: new Headers(header),
		body: body(),
		exchange: {
			holder: {},
			body: { pause: () => {}, resume: () => {} },
			refuse: () => {},
			incomplete: undefined,
		},
		contextValues: createContextValues(),
		signal: new AbortController().signal,
	});
	const received: Uint8Array[] = [];
	const ended = (async () => {
		for await (const chunk of metered) {
			received.push(chunk);
		}
	})();
	return {
		sizes,
		incomplete,
		ended,
		received: () => Buffer.concat(received),
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
	expect(body.sizes).toEqual([]);
	await body.send(undefined);
	await body.ended;
	expect(body.sizes).toEqual([message.length]);
	expect(body.received()).toEqual(Buffer.from(message));
});

it("a message of gRPC takes its turn when the request has ended, and not when it is complete", async () => {
	const body = start({ "content-type": "application/grpc" });
	const enveloped = encodeEnvelope(0, message);
	await body.send(enveloped);
	expect(body.sizes).toEqual([]);
	expect(body.received()).toHaveLength(0);
	await body.send(undefined);
	await body.ended;
	expect(body.sizes).toEqual([message.length]);
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

it("a second message is passed on, and holds nothing back for ever", async () => {
	const body = start({ "content-type": "application/grpc" });
	const enveloped = encodeEnvelope(0, message);
	await body.send(enveloped);
	await body.send(enveloped);
	expect(body.received()).toHaveLength(2 * enveloped.length);
	await body.send(undefined);
	await body.ended;
	expect(body.received()).toHaveLength(2 * enveloped.length);
});

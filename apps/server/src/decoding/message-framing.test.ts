import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
	Envelopes,
	type FramingOptions,
	type MessageFraming,
	WholeBody,
} from "./message-framing.ts";

const freeBytes = 10;
const maxBytes = 30;

/** What came out of a body that arrived in chunks. */
interface Seen {
	readonly held: Buffer[];
	readonly sizes: number[];
	/** How many bytes had been handed on when a message was reported complete. */
	readonly handedOn: number[];
	readonly bytes: Buffer;
}

function run(create: (options: FramingOptions) => MessageFraming, chunks: Uint8Array[]): Seen {
	const seen = { held: [] as Buffer[], sizes: [] as number[], handedOn: [] as number[] };
	let bytes: Buffer = Buffer.alloc(0);
	const framing = create({
		freeBytes,
		maxBytes,
		onHeld: (message) => seen.held.push(Buffer.from(message)),
		onComplete: (size) => {
			seen.sizes.push(size);
			seen.handedOn.push(bytes.length);
		},
	});
	const release = (released: readonly Uint8Array[]) => {
		bytes = Buffer.concat([bytes, ...released]);
	};
	for (const chunk of chunks) {
		release(framing.push(chunk));
		while (framing.rest !== undefined) {
			release(framing.push(framing.rest));
		}
	}
	release(framing.end());
	return { ...seen, bytes };
}

/** The bytes, cut where the numbers say. */
function cut(bytes: Buffer, cuts: readonly number[]): Buffer[] {
	const at = [...new Set(cuts.map((each) => each % (bytes.length + 1)))].sort((a, b) => a - b);
	return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length));
}

function envelope(message: Uint8Array): Buffer {
	const head = Buffer.alloc(5);
	head.writeUInt32BE(message.length, 1);
	return Buffer.concat([head, message]);
}

const message = fc.uint8Array({ maxLength: 40 });
const cuts = fc.array(fc.nat(), { maxLength: 12 });
const isHeld = ({ length }: Uint8Array) => length > freeBytes && length <= maxBytes;

describe("envelopes", () => {
	it("hand on every byte, and report each large message before any of it, however it is cut", () => {
		fc.assert(
			fc.property(fc.array(message, { maxLength: 6 }), cuts, (messages, at) => {
				const body = Buffer.concat(messages.map(envelope));
				const seen = run((options) => new Envelopes(options), cut(body, at));
				expect(seen.bytes).toEqual(body);
				expect(seen.held).toEqual(messages.filter(isHeld).map((each) => Buffer.from(each)));
				expect(seen.sizes).toEqual(messages.map(({ length }) => length));
				let end = 0;
				for (const [index, { length }] of messages.entries()) {
					end += 5 + length;
					expect(seen.handedOn[index]).toBeLessThan(end);
				}
			}),
			{ numRuns: 500 },
		);
	});

	it("hand on 64 messages at once, however many arrive, whether they are held or not", () => {
		fc.assert(
			fc.property(
				fc.array(message, { minLength: 64, maxLength: 200 }),
				fc.nat(1_000),
				(messages, first) => {
					const body = Buffer.concat(messages.map(envelope));
					let completed = 0;
					const framing = new Envelopes({
						...{ freeBytes, maxBytes },
						onHeld: () => {},
						onComplete: () => {
							completed += 1;
						},
					});
					const released: Uint8Array[] = [];
					for (const chunk of cut(body, [first])) {
						let rest: Uint8Array | undefined = chunk;
						while (rest !== undefined) {
							const before = completed;
							released.push(...framing.push(rest));
							({ rest } = framing);
							expect(completed - before).toBeLessThanOrEqual(64);
							expect(completed - before === 64 || rest === undefined).toBe(true);
						}
					}
					expect(completed).toBe(messages.length);
					expect(Buffer.concat(released).equals(body)).toBe(true);
				},
			),
			{ numRuns: 50 },
		);
	});

	it("hand on what is incomplete when the body ends", () => {
		const body = envelope(new Uint8Array(20)).subarray(0, 15);
		expect(run((options) => new Envelopes(options), [body]).bytes).toEqual(body);
	});

	it("hand on a message that is too large as it arrives", () => {
		const framing = new Envelopes({ freeBytes, maxBytes, onHeld: () => {}, onComplete: () => {} });
		const head = Buffer.from([0, 0xff, 0xff, 0xff, 0xff]);
		expect(framing.push(head)).toEqual([head]);
		const chunk = Buffer.alloc(100);
		expect(framing.push(chunk)).toEqual([chunk]);
	});
});

describe("a whole body", () => {
	it("is handed on when it is complete, and reported if it is large", () => {
		fc.assert(
			fc.property(message, cuts, (body, at) => {
				const seen = run((options) => new WholeBody(options), cut(Buffer.from(body), at));
				expect(seen.bytes).toEqual(Buffer.from(body));
				expect(seen.held).toEqual(isHeld(body) ? [Buffer.from(body)] : []);
				expect(seen.sizes).toEqual([body.length]);
			}),
		);
	});

	it("is handed on as soon as it is too large", () => {
		const framing = new WholeBody({ freeBytes, maxBytes, onHeld: () => {}, onComplete: () => {} });
		expect(framing.push(Buffer.alloc(20))).toEqual([]);
		expect(Buffer.concat(framing.push(Buffer.alloc(11)))).toHaveLength(31);
	});
});

describe("a message that is held back", () => {
	it("is kept in few chunks, however tiny those are that arrive", () => {
		const framing = new Envelopes({
			...{ freeBytes, maxBytes: 100_000 },
			onHeld: () => {},
			onComplete: () => {},
		});
		const bytes = Buffer.from(Array.from({ length: 50_000 }, (_, index) => index % 251));
		framing.push(envelope(bytes).subarray(0, 5));
		for (let at = 0; at < bytes.length - 1; at += 1) {
			framing.push(bytes.subarray(at, at + 1));
		}
		const held = framing.end();
		expect(held.length).toBeLessThan(60);
		expect(Buffer.concat(held).equals(bytes.subarray(0, -1))).toBe(true);
	});
});

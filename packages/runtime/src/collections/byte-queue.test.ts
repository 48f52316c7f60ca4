import { forEachSeed, reachableBytes } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import type { Random } from "../random.ts";
import { seededRandom } from "../testing/index.ts";
import { ByteQueue } from "./byte-queue.ts";

const chunkBytes = 1024 * 1024;

/** A part of a chunk, with bytes that count up from `first`. */
function partOf(chunk: number, length: number, first: number): Uint8Array {
	const start = Math.floor((chunk - length) / 2);
	const bytes = new Uint8Array(chunk).subarray(start, start + length);
	for (let index = 0; index < length; index += 1) {
		bytes[index] = first + index;
	}
	return bytes;
}

/** Takes all pieces, one after the other. */
function shiftAll(queue: ByteQueue): readonly Uint8Array[] {
	const pieces: Uint8Array[] = [];
	for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
		pieces.push(next);
	}
	return pieces;
}

/** A queue, and the bytes that it should have. */
class Checked {
	readonly queue = new ByteQueue();
	#bytes: Buffer = Buffer.alloc(0);
	#first = 0;

	push(length: number, chunk: number): void {
		const bytes = partOf(Math.max(chunk, length), length, this.#first);
		this.#first += length;
		this.queue.push(bytes);
		this.#bytes = Buffer.concat([this.#bytes, bytes]);
		this.check();
	}

	take(length: number): void {
		this.#drop(this.queue.take(length), length);
	}

	takeByte(): void {
		if (this.#bytes.length === 0) {
			expect(() => this.queue.takeByte()).toThrow("there are no bytes");
		} else {
			this.#drop(Uint8Array.of(this.queue.takeByte()), 1);
		}
	}

	shift(): void {
		const bytes = this.queue.shift();
		expect(bytes === undefined).toBe(this.#bytes.length === 0);
		if (bytes !== undefined) {
			expect(bytes.length).toBeGreaterThan(0);
			this.#drop(bytes, bytes.length);
		}
	}

	join(): void {
		expect(this.#bytes.equals(this.queue.join())).toBe(true);
		this.check();
	}

	clear(): void {
		this.queue.clear();
		this.#bytes = Buffer.alloc(0);
		this.check();
	}

	check(): void {
		expect(this.queue.length).toBe(this.#bytes.length);
	}

	#drop(bytes: Uint8Array, length: number): void {
		expect(this.#bytes.subarray(0, length).equals(bytes)).toBe(true);
		this.#bytes = Buffer.from(this.#bytes.subarray(length));
		this.check();
	}
}

function step(queue: Checked, random: Random): void {
	const below = (limit: number) => Math.floor(random.next() * limit);
	const action = random.next();
	if (action < 0.6) {
		const length = [below(4), below(2_000), below(60_000)][below(3)] ?? 0;
		const chunk = [length, 2 * length, 64 * 1024, chunkBytes][below(4)] ?? 0;
		queue.push(length, chunk);
	} else if (action < 0.75) {
		queue.shift();
	} else if (action < 0.85) {
		queue.takeByte();
	} else if (action < 0.96) {
		queue.take(below(queue.queue.length + 1));
	} else if (action < 0.98) {
		queue.join();
	} else {
		queue.clear();
	}
}

describe("a queue of bytes", () => {
	it("has what was pushed and not taken, in memory that is proportional to it", async () => {
		await forEachSeed(8, async (seed) => {
			const random = seededRandom(seed);
			const before = reachableBytes();
			const queues = Array.from({ length: 256 }, () => new Checked());
			for (let count = 0; count < 4_000; count += 1) {
				const queue = queues[Math.floor(random.next() * queues.length)];
				if (queue !== undefined) {
					step(queue, random);
				}
			}
			for (const [index, queue] of queues.entries()) {
				// Few bytes are left in all of them, of pieces and blocks that may be large.
				queue.take(Math.max(0, queue.queue.length - (index % 8)));
			}
			await expect.poll(() => reachableBytes() - before).toBeLessThan(chunkBytes / 2);
			for (const queue of queues) {
				queue.join();
				queue.take(queue.queue.length);
			}
		});
	});

	it("keeps no chunk for a small part of it", async () => {
		const before = reachableBytes();
		const queue = new ByteQueue();
		for (let count = 0; count < 100; count += 1) {
			queue.push(partOf(chunkBytes, 1, count));
		}
		await expect.poll(() => reachableBytes() - before).toBeLessThan(chunkBytes);
		expect([...queue.join()]).toEqual(Array.from({ length: 100 }, (_, count) => count));
	});

	it("keeps no piece that was taken, or of which most was taken", async () => {
		const before = reachableBytes();
		const queue = new ByteQueue();
		const add = () => queue.push(partOf(chunkBytes, chunkBytes, 0));
		add();
		add();
		add();
		queue.take(chunkBytes);
		await expect.poll(() => reachableBytes() - before).toBeLessThan(2.5 * chunkBytes);
		queue.take(2 * chunkBytes - 1);
		await expect.poll(() => reachableBytes() - before).toBeLessThan(chunkBytes / 2);
		expect([...queue.take(1)]).toEqual([255]);
	});

	it("keeps no block that became too large for what is left", async () => {
		const before = reachableBytes();
		const queues = Array.from({ length: 100 }, () => {
			const queue = new ByteQueue();
			queue.push(partOf(16_384, 16_384, 0));
			queue.push(partOf(chunkBytes, 1, 1));
			queue.take(16_384);
			return queue;
		});
		await expect.poll(() => reachableBytes() - before).toBeLessThan(chunkBytes / 2);
		for (const queue of queues) {
			queue.push(partOf(chunkBytes, 1, 2));
			expect([...queue.join()]).toEqual([1, 2]);
		}
	});

	it("joins small pieces, and leaves large ones as they are", () => {
		const queue = new ByteQueue();
		const large = partOf(16_384, 16_384, 0);
		queue.push(large);
		for (let count = 0; count < 65_536; count += 1) {
			queue.push(partOf(1, 1, count));
		}
		queue.push(large);
		const [first, ...others] = shiftAll(queue);
		expect(first?.buffer).toBe(large.buffer);
		expect(others.at(-1)?.buffer).toBe(large.buffer);
		expect(others.length).toBeLessThan(10);
		expect(queue.length).toBe(0);
	});

	it("does not copy a piece that is alone", () => {
		const queue = new ByteQueue();
		const small = partOf(10, 3, 1);
		queue.push(small);
		expect(queue.join().buffer).toBe(small.buffer);
		expect(queue.shift()?.buffer).toBe(small.buffer);
	});

	it("does not change what it has handed out", () => {
		const queue = new ByteQueue();
		queue.push(partOf(4_096, 2, 1));
		queue.push(partOf(4_096, 2, 3));
		queue.push(partOf(4_096, 1, 5));
		const all = queue.join();
		const first = queue.shift();
		queue.push(partOf(4_096, 2, 6));
		queue.push(partOf(4_096, 2, 8));
		expect([[...all], [...(first ?? [])]]).toEqual([
			[1, 2, 3, 4, 5],
			[1, 2, 3, 4, 5],
		]);
		expect([...queue.join()]).toEqual([6, 7, 8, 9]);
	});

	it("has no more bytes than it has", () => {
		const queue = new ByteQueue();
		queue.push(partOf(3, 3, 0));
		expect(() => queue.take(4)).toThrow("there are 3 bytes, wanted: 4");
		expect(queue.length).toBe(3);
	});
});

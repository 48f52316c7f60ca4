import { describe, expect, it } from "vitest";
import type { Fields } from "../inbound-call.ts";
import { OrderedWrites } from "./ordered-writes.ts";

/** A call whose client reads when a test says so. */
function slowCall() {
	const log: string[] = [];
	const reads: PromiseWithResolvers<void>[] = [];
	const writes = new OrderedWrites({
		write: (bytes) => {
			log.push(`${bytes[0]}`);
			const read = Promise.withResolvers<void>();
			reads.push(read);
			return read.promise;
		},
		end: (trailers?: Fields) => log.push(`end ${trailers?.["grpc-status"]}`),
	});
	const settle = () => new Promise((resolve) => setImmediate(resolve));
	return { log, reads, writes, settle };
}

describe("ordered writes", () => {
	it("begin when the one before is complete, and so does the end", async () => {
		const { log, reads, writes, settle } = slowCall();
		for (const byte of [1, 2]) {
			void writes.write(Uint8Array.of(byte));
		}
		writes.complete(Uint8Array.of(3), { "grpc-status": "0" });
		expect(log).toEqual(["1"]);
		reads[0]?.resolve();
		await settle();
		expect(log).toEqual(["1", "2"]);
		// The client is gone.
		reads[1]?.reject(new Error("gone"));
		await settle();
		expect(log).toEqual(["1", "2", "3", "end 0"]);
	});

	it("do not begin after a stop", async () => {
		const { log, reads, writes, settle } = slowCall();
		void writes.write(Uint8Array.of(1));
		void writes.write(Uint8Array.of(2));
		writes.stop();
		reads[0]?.resolve();
		await settle();
		expect(log).toEqual(["1"]);
	});

	it("are in parts if they are large, until the client has read", async () => {
		const { reads, writes, settle } = slowCall();
		void writes.write(new Uint8Array(10));
		expect(writes.isWithinWrite).toBe(false);
		reads[0]?.resolve();
		await settle();
		void writes.write(new Uint8Array(100_000));
		expect(writes.isWithinWrite).toBe(true);
		reads[1]?.resolve();
		await settle();
		expect(writes.isWithinWrite).toBe(false);
	});
});

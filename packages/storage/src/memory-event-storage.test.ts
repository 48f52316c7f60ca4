import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { describeEventConformance } from "./conformance/index.ts";
import { MemoryEventStorage } from "./memory-event-storage.ts";

describeEventConformance(
	"the memory storage of events",
	async () => {
		const storage = new MemoryEventStorage(new FakeClock());
		return { storage, other: storage, reopen: async () => storage, dispose: async () => {} };
	},
	{ describe, it },
);

describe("the memory storage of events", () => {
	it("removes rows that were not written again in time", async () => {
		const clock = new FakeClock();
		const storage = new MemoryEventStorage(clock);
		const write = (key: string) => storage.write([{ key, body: Buffer.from("x") }], { ttlMs: 100 });
		await write("old");
		await write("renewed");
		await clock.advanceAsync(60);
		await write("renewed");
		await clock.advanceAsync(60);
		await write("new");
		expect(storage.size).toBe(2);
	});

	it("refuses writes once it is closed, and ends what follows it", async () => {
		const storage = new MemoryEventStorage(new FakeClock());
		const rows = storage.follow(new AbortController().signal);
		await rows.next();
		const next = rows.next();
		storage.close();
		await expect(next).rejects.toThrow("the storage is closed");
		await expect(storage.write([], { ttlMs: 1 })).rejects.toThrow("the storage is closed");
	});
});

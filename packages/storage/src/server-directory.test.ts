import { expect, it } from "vitest";
import { LocalServerDirectory, type ServerRecord } from "./server-directory.ts";

const own: ServerRecord = {
	...{ id: "1", name: "host/1", address: "http://127.0.0.1:7575" },
	...{ startedAtMs: 0, version: "1.0.0", secret: "secret" },
};

it("a local directory has the server that has joined, until it leaves", async () => {
	const directory = new LocalServerDirectory();
	const { signal } = new AbortController();
	expect(await directory.list(signal)).toEqual([]);
	directory.join(own);
	expect(await directory.list(signal)).toEqual([own]);
	await directory.leave();
	expect(await directory.list(signal)).toEqual([]);
});

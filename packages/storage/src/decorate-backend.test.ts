import type { ID } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import type { StorageBackend } from "./backend.ts";
import { artistType, idFor, resource } from "./conformance/test-resources.ts";
import { decorateBackend } from "./decorate-backend.ts";
import { NotFound } from "./errors.ts";
import { createMemoryBackend } from "./memory-backend.ts";

/** A backend as a class: with methods on its prototype, private fields, and more than the interface. */
class ClassBackend implements StorageBackend {
	readonly #inner = createMemoryBackend();
	#backups = 0;
	lookup: StorageBackend["lookup"] = (...args) => this.#inner.lookup(...args);
	list: StorageBackend["list"] = (query, options) => this.#inner.list(query, options);
	snapshot: StorageBackend["snapshot"] = (...args) => this.#inner.snapshot(...args);
	listByOwner: StorageBackend["listByOwner"] = (...args) => this.#inner.listByOwner(...args);
	countByType: StorageBackend["countByType"] = (...args) => this.#inner.countByType(...args);
	countByTypeIn: StorageBackend["countByTypeIn"] = (...args) => this.#inner.countByTypeIn(...args);
	watchList: StorageBackend["watchList"] = (...args) => this.#inner.watchList(...args);
	commit: StorageBackend["commit"] = (...args) => this.#inner.commit(...args);
	catchUp: StorageBackend["catchUp"] = (...args) => this.#inner.catchUp(...args);

	read(id: ID, options?: Parameters<StorageBackend["read"]>[1]) {
		return this.#inner.read(id, options);
	}

	close() {
		return this.#inner.close();
	}

	backup(): number {
		this.#backups += 1;
		return this.#backups;
	}

	get backups(): number {
		return this.#backups;
	}
}

const query = { type: artistType, tenancy: { partition: "*", namespace: "*" }, namePrefix: "" };
const put = { op: "put" as const, resource: resource("a"), expectedVersion: "" };

describe("decorateBackend", () => {
	it("passes all methods through but those that it replaces", async () => {
		const backend = new ClassBackend();
		let commits = 0;
		const decorated = decorateBackend(backend, {
			commit: (mutations, options) => {
				commits += 1;
				return backend.commit(mutations, options);
			},
		});
		await decorated.commit([put]);
		await backend.commit([{ ...put, resource: resource("b") }]);
		expect(commits).toBe(1);
		expect((await decorated.read(idFor("a"))).id?.name).toBe("a");
		expect((await decorated.list(query)).resources).toHaveLength(2);
	});

	it("passes methods of the class through, with the backend as `this`", async () => {
		const backend = new ClassBackend();
		const { backup, read } = decorateBackend(decorateBackend(backend, {}), {});
		expect([backup(), backup()]).toEqual([1, 2]);
		expect(backend.backups).toBe(2);
		await expect(read(idFor("a"))).rejects.toThrow(NotFound);
	});

	it("reads properties when they are read, not when the backend is decorated", () => {
		const backend = new ClassBackend();
		const decorated = decorateBackend(backend, {});
		backend.backup();
		expect(decorated.backups).toBe(1);
	});

	it("passes calls to a method that is replaced later", async () => {
		const backend = createMemoryBackend();
		const decorated = decorateBackend(backend, {});
		backend.catchUp = async () => "17";
		expect(await decorated.catchUp(new AbortController().signal)).toBe("17");
	});

	it("looks nothing up at once past a replaced read or lookup", () => {
		const backend = createMemoryBackend();
		const { read, lookup, catchUp } = backend;
		expect(decorateBackend(backend, { catchUp }).lookupNow?.(idFor("a"))).toBeUndefined();
		expect(decorateBackend(backend, { catchUp })).toHaveProperty("lookupNow");
		expect(decorateBackend(backend, { read })).not.toHaveProperty("lookupNow");
		expect(decorateBackend(backend, { lookup })).not.toHaveProperty("lookupNow");
	});

	it("can be spread and decorated again without losing a method", async () => {
		const copy = Object.assign({}, decorateBackend(new ClassBackend(), {}));
		await expect(copy.read(idFor("a"))).rejects.toThrow(NotFound);
		expect(copy.backup()).toBe(1);
	});
});

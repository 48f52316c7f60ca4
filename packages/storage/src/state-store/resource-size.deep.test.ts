import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { systemRuntime } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import { checkGrowth, defaultStorageLimits } from "../limits.ts";
import { memorySize } from "./resource-size.ts";
import { StateStore } from "./state-store.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

const type = { group: "demo", groupVersion: "v1", kind: "Artist" };
const tenancy = { partition: "default", namespace: "default" };
const uid = "01jd6k3m4n5p6q7r8s9t0vwxyz";
const many = Array.from({ length: 30 }, (_, index) => index);

type Parts = Exclude<MessageInitShape<typeof ResourceSchema>, Resource>;

/** Resources that have more of one part than others, and hardly any data. */
const kinds: Readonly<Record<string, (index: number) => Parts>> = {
	"nothing else": () => ({}),
	"an owner": () => ({ owner: { name: "owner", uid, type, tenancy } }),
	"references to owners": () => ({
		ownerReferences: many.map((each) => ({ name: `o${each}`, type, tenancy })),
	}),
	metadata: (index) => ({
		metadata: Object.fromEntries(many.map((each) => [`k${each}-${index % 97}`, `v${each}`])),
	}),
	statuses: (index) => ({
		status: Object.fromEntries(many.map((each) => [`k${each}-${index % 97}`, {}])),
	}),
	conditions: () => ({
		status: { all: { conditions: many.map((each) => ({ type: `T${each}`, reason: "R" })) } },
	}),
	"conditions of resources": () => ({
		status: {
			all: {
				conditions: many.map((each) => ({
					...{ type: `T${each}`, reason: "R" },
					resource: { name: "x", type, tenancy },
				})),
			},
		},
	}),
};

function resourceOf(index: number, parts: Parts): Resource {
	const resource = create(ResourceSchema, {
		id: { name: `r-${index}`, uid, type, tenancy },
		version: String(index),
		generation: uid,
		data: { typeUrl: "demo.v1.Artist", value: new Uint8Array(10) },
		...parts,
	});
	// As a storage has it: no part is shared.
	return fromBinary(ResourceSchema, toBinary(ResourceSchema, resource));
}

function load(count: number, partsOf: (index: number) => Parts): StateStore {
	const store = new StateStore(systemRuntime, defaultStorageLimits);
	for (let index = 0; index < count; index += 1) {
		store.load(resourceOf(index, partsOf(index)));
	}
	return store;
}

function memory(): number {
	collectGarbage();
	collectGarbage();
	const { heapUsed, external } = process.memoryUsage();
	return heapUsed + external;
}

describe("the memory of a resource", () => {
	it.each(Object.entries(kinds))("is counted, and not far too high: with %s", (_name, partsOf) => {
		// The first time some of the memory is compiled code.
		load(1_000, partsOf);
		// What else comes and goes on the heap meanwhile spoils one measurement, and not two of them.
		const ratios = [1, 2, 3].map(() => {
			const before = memory();
			const store = load(2_500, partsOf);
			return store.bytes / (memory() - before);
		});
		const median = ratios.toSorted((a, b) => a - b)[1];
		expect(median).toBeGreaterThan(0.9);
		expect(median).toBeLessThan(3);
	});

	it("counts for the memory limit, once for each resource", () => {
		const resource = resourceOf(1, {});
		const limits = { ...defaultStorageLimits, memoryBytes: 1_000_000 };
		const put = { kind: "put", resource, replaced: undefined } as const;
		const most = 800_000 - memorySize(resource);
		expect(() => checkGrowth(most, [put], limits)).not.toThrow();
		expect(() => checkGrowth(most + 1, [put], limits)).toThrow("over 80 % of the memory limit");
		const again = { kind: "put", resource, replaced: resource } as const;
		expect(() => checkGrowth(most + 1, [again], limits)).not.toThrow();
	});

	it("counts for what logs retain", () => {
		const store = new StateStore(systemRuntime, defaultStorageLimits);
		const resource = resourceOf(1, {});
		store.apply(1, [{ op: "put", resource }]);
		const before = store.retainedBytes;
		store.apply(2, [{ op: "put", resource: resourceOf(2, {}) }]);
		store.apply(3, [{ op: "delete", resource }]);
		expect(store.retainedBytes - before).toBeGreaterThan(memorySize(resource));
		expect(store.bytes).toBe(memorySize(resourceOf(2, {})));
	});
});

import { create, createFileRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema, file_google_protobuf_descriptor } from "@bufbuild/protobuf/wkt";
import {
	file_plinth_resource_v1_annotations,
	file_plinth_tenancy_v1_tenancy,
	NamespaceSchema,
	PartitionSchema,
	ResourceSchema,
	Scope,
} from "@plinth/proto";
import { file_plinth_meta_v1_copy_policy } from "@plinth/proto/gen/plinth/meta/v1/copy_policy_pb.js";
import { systemRuntime } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import { allowed } from "./access.ts";
import { Namespace, Partition, Tombstone } from "./builtin-types.ts";
import {
	cachesDecodedForm,
	DecodeError,
	decode,
	decodeShared,
	encodeData,
	resourceOf,
} from "./decode.ts";
import { idOf } from "./id.ts";
import { TypeRegistry } from "./registry.ts";
import { defineType } from "./resource-type.ts";
import { AsynchronousHook } from "./synchronous.ts";
import { isUlid, newUlid } from "./ulid.ts";

describe("defineType", () => {
	it("takes the names from package and message, and the scope from the option", () => {
		expect(Namespace.key).toBe("tenancy.v1.Namespace");
		expect(Namespace.family).toBe("tenancy.Namespace");
		expect(Namespace.scope).toBe(Scope.PARTITION);
	});

	it("takes the names from the option if it has them", () => {
		expect(Tombstone.key).toBe("internal.v1.Tombstone");
	});

	it("refuses a message that is not a resource type", () => {
		expect(() => defineType(ResourceSchema)).toThrow(
			"message plinth.resource.v1.Resource is not a resource type: it lacks the option (plinth.resource.v1.spec)",
		);
	});

	it("accepts a message with serialized descriptors", () => {
		const files = [
			file_google_protobuf_descriptor,
			file_plinth_resource_v1_annotations,
			file_plinth_meta_v1_copy_policy,
			file_plinth_tenancy_v1_tenancy,
		].map((file) => file.proto);
		const bytes = toBinary(
			FileDescriptorSetSchema,
			create(FileDescriptorSetSchema, { file: files }),
		);
		const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
		const schema = registry.getMessage("plinth.tenancy.v1.Namespace");
		expect(schema && defineType(schema).key).toBe("tenancy.v1.Namespace");
	});
});

describe("hooks", () => {
	const partition = () =>
		decode(
			Partition,
			resourceOf(Partition, { id: idOf(Partition, "p"), data: create(PartitionSchema) }),
		);
	const access = { subject: "miles", check: () => allowed };

	it("that return promises are refused by the type checker", () => {
		// @ts-expect-error an asynchronous mutate hook
		defineType(PartitionSchema, { mutate: async () => {} });
		// @ts-expect-error an asynchronous validate hook, as a method
		defineType(PartitionSchema, { async validate() {} });
		// @ts-expect-error a promise from elsewhere
		defineType(PartitionSchema, { validate: ({ data }) => fetch(data.description) });
		// @ts-expect-error an asynchronous decision
		defineType(PartitionSchema, { authorize: { read: async () => allowed } });
		// @ts-expect-error for the same reason
		defineType(PartitionSchema, { authorize: { write: () => Promise.resolve(allowed) } });
		// @ts-expect-error an asynchronous cloner
		defineType(PartitionSchema, { clone: async (message) => message });
		const fine = defineType(PartitionSchema, {
			mutate: ({ data }) => {
				data.description ||= "none";
			},
			validate: ({ data }) => (data.description === "" ? undefined : undefined),
			authorize: { read: () => allowed },
		});
		let calls = 0;
		defineType(PartitionSchema, { mutate: () => calls++, validate: () => calls === 1 });
		expect(fine.hooks.authorize?.list).toBeUndefined();
		expect(fine.hooks.clone).toBeUndefined();
	});

	it("that return promises anyway fail by name, without an unhandled rejection", async () => {
		const unhandled: unknown[] = [];
		const onUnhandled = (reason: unknown) => unhandled.push(reason);
		process.on("unhandledRejection", onUnhandled);
		const fail = async () => {
			throw new Error("dropped");
		};
		const hooks: object = {
			...{ mutate: fail, validate: fail, clone: fail },
			authorize: { read: fail, write: fail, list: fail },
		};
		const type = defineType(PartitionSchema, hooks);
		const { mutate, validate, clone, authorize } = type.hooks;
		const calls: Readonly<Record<string, () => unknown>> = {
			mutate: () => mutate?.(partition()),
			validate: () => validate?.(partition()),
			clone: () => clone?.(create(PartitionSchema)),
			read: () => authorize?.read?.(access, idOf(Partition, "p"), undefined),
			write: () => authorize?.write?.(access, idOf(Partition, "p"), undefined),
			list: () => authorize?.list?.(access, {}),
		};
		for (const [name, call] of Object.entries(calls)) {
			expect(call, name).toThrow(AsynchronousHook);
			expect(call).toThrow(`hook ${name} of resource type tenancy.v1.Partition returned a promise`);
		}
		await new Promise((resolve) => setImmediate(resolve));
		process.off("unhandledRejection", onUnhandled);
		expect(unhandled).toEqual([]);
	});

	it("keep their object as `this`", () => {
		const hooks = {
			minimum: 3,
			validate({ data }: { readonly data: { readonly description: string } }) {
				if (data.description.length < this.minimum) {
					throw new Error("too short");
				}
			},
		};
		expect(() => defineType(PartitionSchema, hooks).hooks.validate?.(partition())).toThrow(
			"too short",
		);
	});
});

describe("TypeRegistry", () => {
	it("contains registered types, and refuses duplicates", () => {
		const registry = new TypeRegistry([Partition, Namespace]);
		expect(registry.get({ group: "tenancy", groupVersion: "v1", kind: "Partition" })).toBe(
			Partition,
		);
		expect(registry.get({ group: "tenancy", groupVersion: "v2", kind: "Partition" })).toBe(
			undefined,
		);
		expect(() => registry.register(Partition)).toThrow(
			"resource type tenancy.v1.Partition is registered already",
		);
		expect(registry.all().map((type) => type.key)).toEqual([
			"tenancy.v1.Namespace",
			"tenancy.v1.Partition",
		]);
	});

	it("refuses another scope within a family", () => {
		const registry = new TypeRegistry([Partition]);
		const other = {
			...Partition,
			schema: NamespaceSchema,
			key: "tenancy.v2.Partition",
			scope: Scope.NAMESPACE,
		};
		expect(() => registry.register(other)).toThrow("a different scope from tenancy.v1.Partition");
	});

	it("resolves the messages of its types for JSON", () => {
		const messages = new TypeRegistry([Partition]).messages();
		expect(messages.getMessage("plinth.tenancy.v1.Partition")).toBe(PartitionSchema);
	});
});

describe("decoding", () => {
	const partition = resourceOf(Partition, {
		id: idOf(Partition, "p"),
		data: create(PartitionSchema, { description: "d" }),
	});

	it("returns the data as a message that belongs to the caller", () => {
		const first = decode(Partition, partition).data;
		const second = decode(Partition, partition).data;
		expect(first.description).toBe("d");
		expect(first).not.toBe(second);
	});

	it("happens once per resource if the result is shared, which is frozen", () => {
		const first = decodeShared(Partition, partition);
		expect(decodeShared(Partition, partition)).toBe(first);
		expect(Object.isFrozen(first.data)).toBe(true);
	});

	it("drops data that is many times larger than its encoded bytes when other such data is read", () => {
		const type = { schema: ResourceSchema };
		// About 7 MB each, in 200 kB.
		const data = create(ResourceSchema, {
			ownerReferences: Array.from({ length: 100_000 }, () => ({})),
		});
		const large = () => create(ResourceSchema, { data: encodeData(ResourceSchema, data) });
		const small = resourceOf(Partition, { id: idOf(Partition, "small") });
		const keptData = decodeShared(Partition, small).data;
		const first = large();
		const second = large();
		const firstData = decodeShared(type, first).data;
		const secondData = decodeShared(type, second).data;
		expect(decodeShared(type, first).data).toBe(firstData);
		expect(cachesDecodedForm(first)).toBe(false);
		for (let others = 0; others < 9; others++) {
			decodeShared(type, large());
			expect(decodeShared(type, second).data).toBe(secondData);
		}
		expect(decodeShared(type, first).data).not.toBe(firstData);
		expect(decodeShared(type, first).data.ownerReferences).toHaveLength(100_000);
		expect(decodeShared(Partition, small).data).toBe(keptData);
	});

	it("treats absent data as an empty message", () => {
		const bare = create(ResourceSchema, { id: idOf(Partition, "p") });
		expect(decode(Partition, bare).data).toEqual(create(PartitionSchema));
	});

	it("names the resource whose data is another message or malformed", () => {
		const wrong = { ...partition, data: encodeData(NamespaceSchema, create(NamespaceSchema)) };
		expect(() => decode(Partition, wrong)).toThrow(
			"tenancy.v1.Partition p can't be decoded: expected plinth.tenancy.v1.Partition, got plinth.tenancy.v1.Namespace",
		);
		const any = encodeData(PartitionSchema, create(PartitionSchema));
		const broken = { ...partition, data: { ...any, value: new Uint8Array([10, 9]) } };
		expect(() => decodeShared(Partition, broken)).toThrow(DecodeError);
	});
});

describe("newUlid", () => {
	it("is a fresh ULID on each call", () => {
		const ulids = new Set(Array.from({ length: 1000 }, () => newUlid(systemRuntime)));
		expect(ulids.size).toBe(1000);
		expect([...ulids].every(isUlid)).toBe(true);
		expect(isUlid("01arz3ndektsv4rrffq69g5fav")).toBe(false);
		expect(isUlid("x")).toBe(false);
	});
});

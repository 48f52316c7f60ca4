import { create } from "@bufbuild/protobuf";
import type { ID, Resource } from "@plinth/proto";
import {
	type PeeringRecord,
	PeeringRecordSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { decodeShared, defineType, idOf, newUlid, resourceOf } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { Mutation, ReadOptions, StorageBackend } from "@plinth/storage";

/**
 * The records of peerings: `peering.v1.PeeringRecord`. No service registers the type, so no caller can read, list, watch or
 * write it, with any right; its values are not in the audit log either, which has names only. Backups have them.
 */
export const Record = defineType(PeeringRecordSchema);

type OneOf = PeeringRecord["record"];
type Case = NonNullable<OneOf["case"]>;
type ValueOf<Name extends Case> = Extract<OneOf, { readonly case: Name }>["value"];

/** A record, and how it is stored. */
export interface Stored<Value> {
	readonly value: Value;
	readonly resource: Resource;
}

/** The name of the record of one kind for a uid. */
export function recordId(kind: Case, uid: string): ID {
	return idOf(Record, uid === "" ? kind : `${kind}-${uid.toLowerCase()}`);
}

/** Reads records, and prepares the mutations that write them. */
export class PeeringRecords {
	readonly #backend: Pick<StorageBackend, "lookup" | "list">;
	readonly #runtime: Runtime;

	constructor(backend: Pick<StorageBackend, "lookup" | "list">, runtime: Runtime) {
		this.#backend = backend;
		this.#runtime = runtime;
	}

	/**
	 * The record of that kind for a uid, read strongly unless the options say otherwise.
	 *
	 * @throws StorageUnavailable.
	 */
	async get<Name extends Case>(
		kind: Name,
		uid: string,
		options: ReadOptions = { consistency: "strong" },
	): Promise<Stored<ValueOf<Name>> | undefined> {
		const resource = await this.#backend.lookup(recordId(kind, uid), options);
		return resource && storedAs(kind, resource);
	}

	/** All records of a kind. @throws StorageUnavailable. */
	async all<Name extends Case>(kind: Name): Promise<readonly Stored<ValueOf<Name>>[]> {
		const tenancy = { partition: "", namespace: "" };
		const query = { type: Record.type, tenancy, namePrefix: `${kind}-` };
		const { resources } = await this.#backend.list(query, { consistency: "strong" });
		return resources.flatMap((resource) => storedAs(kind, resource) ?? []);
	}

	/** The mutation that creates a record, or replaces the stored one. */
	put<Name extends Case>(
		kind: Name,
		uid: string,
		value: ValueOf<Name>,
		stored?: Stored<unknown>,
	): Mutation & { readonly op: "put" } {
		const record = { case: kind, value } as OneOf;
		const id = stored?.resource.id ?? { ...recordId(kind, uid), uid: newUlid(this.#runtime) };
		const resource = resourceOf(Record, { id, data: create(PeeringRecordSchema, { record }) });
		resource.generation = newUlid(this.#runtime);
		const expectedVersion = stored?.resource.version ?? "";
		return { op: "put", resource, expectedVersion };
	}
}

/** The mutation that removes a record. */
export function removalOf({ resource }: Stored<unknown>): Mutation {
	const { id = recordId("cluster", ""), version } = resource;
	return { op: "delete", id, expectedVersion: version };
}

function storedAs<Name extends Case>(
	kind: Name,
	resource: Resource,
): Stored<ValueOf<Name>> | undefined {
	const { record } = decodeShared(Record, resource).data;
	return record.case === kind ? { value: record.value as ValueOf<Name>, resource } : undefined;
}

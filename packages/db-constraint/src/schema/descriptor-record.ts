import { Code } from "@connectrpc/connect";
import { type Mutation, Refused } from "@plinth/storage";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { readRecord, recordId } from "../shadow/shadow-records.ts";
import { protocolRevision } from "./protocol-revision.ts";

/** The name of the record that every commit asserts. */
export const descriptorRecord = "descriptor";

const descriptorId = Object.freeze(recordId(descriptorRecord));

/**
 * The assert that fails a commit once code with another schema has taken over.
 *
 * @throws Refused Unavailable if that has happened, or the schema is not active yet.
 */
export async function assertDescriptor(
	context: Pick<ConstraintContext, "backend" | "descriptor" | "index">,
): Promise<Mutation> {
	return knownDescriptor(context) ?? assertStoredDescriptor(context);
}

/**
 * The assert of `assertDescriptor`, if it is known without reading: every commit needs the record, and the copy in the
 * index is slightly stale at worst.
 */
export function knownDescriptor({
	descriptor,
	index,
}: Pick<ConstraintContext, "descriptor" | "index">): Mutation | undefined {
	const known = index.descriptor;
	return known?.fingerprint === descriptor.fingerprint
		? { op: "assert", id: descriptorId, expectedVersion: known.version }
		: undefined;
}

async function assertStoredDescriptor({
	backend,
	descriptor,
}: Pick<ConstraintContext, "backend" | "descriptor">): Promise<Mutation> {
	const stored = await readRecord(backend, descriptorRecord);
	const record = stored?.record.case === "descriptor" ? stored.record.value : undefined;
	if (stored === undefined || record?.fingerprint !== descriptor.fingerprint) {
		throw new Refused(
			Code.Unavailable,
			"another schema of references is active: this server's is older, or not active yet",
		);
	}
	return { op: "assert", id: descriptorId, expectedVersion: stored.resource.version };
}

/**
 * The number of the schema of this server, if it is active: the version of its record. It grows with each activation, so
 * that others can tell which of two messages is of the later schema. 0 if another schema is active.
 */
export async function schemaNumber(
	context: Pick<ConstraintContext, "backend" | "descriptor" | "index">,
): Promise<bigint> {
	const { fingerprint } = context.descriptor;
	const known = context.index.descriptor;
	if (known?.fingerprint === fingerprint) {
		return BigInt(known.version);
	}
	const stored = await readRecord(context.backend, descriptorRecord);
	const record = stored?.record.case === "descriptor" ? stored.record.value : undefined;
	return record?.fingerprint === fingerprint ? BigInt(stored?.resource.version ?? 0) : 0n;
}

/** Whether the schema of this server is the active one now. @throws StorageError if the storage can't be read. */
export async function isSchemaActive({
	backend,
	descriptor,
}: Pick<ConstraintContext, "backend" | "descriptor">): Promise<boolean> {
	const stored = await readRecord(backend, descriptorRecord, { consistency: "strong" });
	const record = stored?.record.case === "descriptor" ? stored.record.value : undefined;
	return record?.fingerprint === descriptor.fingerprint;
}

/** Whether the references of all resources are derived by the active schema. @throws StorageError if the storage can't be read. */
export async function isSchemaComplete({
	backend,
}: Pick<ConstraintContext, "backend">): Promise<boolean> {
	const stored = await readRecord(backend, descriptorRecord, { consistency: "strong" });
	return stored?.record.case !== "descriptor" || stored.record.value.complete;
}

/** What an establishment has to know of the active schema. */
export interface SchemaForEstablishments {
	/** The types that it serves, as in `iam.v1.Project`. */
	readonly servedTypes: readonly string[];
	/** Fails a commit if another schema has become active since, or the same one again. */
	readonly isActive: Mutation;
}

/**
 * The active schema, for an establishment. It may be another one than that of this server, but not one of a later
 * revision of the protocol.
 *
 * @throws Refused Unavailable if that is active.
 */
export async function schemaForEstablishments({
	backend,
	descriptor,
}: Pick<ConstraintContext, "backend" | "descriptor">): Promise<SchemaForEstablishments> {
	const stored = await readRecord(backend, descriptorRecord);
	const record = stored?.record.case === "descriptor" ? stored.record.value : undefined;
	if (record !== undefined && record.revision > protocolRevision) {
		throw new Refused(
			Code.Unavailable,
			`this server has revision ${protocolRevision} of the protocol of references, and revision ${record.revision} is active: replace it with the version of the other servers`,
		);
	}
	const recorded = record?.servedTypes ?? [];
	return {
		servedTypes: recorded.length === 0 ? descriptor.servedTypes : recorded,
		isActive: { op: "assert", id: descriptorId, expectedVersion: stored?.resource.version ?? "" },
	};
}

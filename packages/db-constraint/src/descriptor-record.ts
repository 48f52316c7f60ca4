import { Code } from "@connectrpc/connect";
import { type Mutation, Refused } from "@plinth/storage";
import type { ConstraintContext } from "./constraint-context.ts";
import { readRecord, recordId } from "./shadow-records.ts";

/** The name of the record that every commit asserts. */
export const descriptorRecord = "descriptor";

const descriptorId = Object.freeze(recordId(descriptorRecord));

/**
 * The assert that fails a commit once code with another schema has taken over.
 *
 * @throws Refused Unavailable if that has happened, or the schema is not active yet.
 */
export async function assertDescriptor({
	backend,
	descriptor,
	index,
}: Pick<ConstraintContext, "backend" | "descriptor" | "index">): Promise<Mutation> {
	// Every commit needs the record: the copy in the index is slightly stale at worst.
	const known = index.descriptor;
	if (known?.fingerprint === descriptor.fingerprint) {
		return { op: "assert", id: descriptorId, expectedVersion: known.version };
	}
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

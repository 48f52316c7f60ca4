import { Code } from "@connectrpc/connect";
import { CasFailure, type Mutation, Refused } from "@plinth/storage";
import type { ConstraintContext } from "./constraint-context.ts";
import { putRecord, readRecord, recordId } from "./shadow-records.ts";

/** The name of the record that every commit asserts. */
export const descriptorRecord = "descriptor";

/**
 * The assert by which a commit fails once code with another schema has taken over.
 *
 * @throws Refused Unavailable where that has happened, or the schema is not in force yet.
 */
export async function assertDescriptor({
	backend,
	descriptor,
}: Pick<ConstraintContext, "backend" | "descriptor">): Promise<Mutation> {
	const stored = await readRecord(backend, descriptorRecord);
	const record = stored?.record.case === "descriptor" ? stored.record.value : undefined;
	if (stored === undefined || record?.fingerprint !== descriptor.fingerprint) {
		throw new Refused(
			Code.Unavailable,
			"another schema of references is in force: this server's is older, or not in force yet",
		);
	}
	return {
		op: "assert",
		id: recordId(descriptorRecord),
		expectedVersion: stored.resource.version,
	};
}

/**
 * Brings the schema into force where none is yet.
 *
 * @throws Error where another one is.
 */
export async function ensureDescriptorRecord({
	backend,
	descriptor,
	environment,
	runtime,
}: Pick<ConstraintContext, "backend" | "descriptor" | "environment" | "runtime">): Promise<void> {
	for (;;) {
		const stored = await readRecord(backend, descriptorRecord, { consistency: "strong" });
		const record = stored?.record.case === "descriptor" ? stored.record.value : undefined;
		if (record?.fingerprint === descriptor.fingerprint) {
			return;
		}
		if (record !== undefined) {
			throw new Error(
				`the schema of references ${record.fingerprint} is in force, not ${descriptor.fingerprint}`,
			);
		}
		try {
			await backend.commit([
				putRecord(runtime, descriptorRecord, stored?.resource, {
					case: "descriptor",
					value: {
						fingerprint: descriptor.fingerprint,
						version: environment.self.version,
						complete: true,
					},
				}),
			]);
			return;
		} catch (failure) {
			if (!(failure instanceof CasFailure)) {
				throw failure;
			}
		}
	}
}

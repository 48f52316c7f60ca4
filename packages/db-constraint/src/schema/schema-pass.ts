import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import {
	type DescriptorRecord,
	DescriptorRecordSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { type FamilyLike, familyKey } from "@plinth/resource";
import { type Mutation, Refused, wildcard } from "@plinth/storage";
import { isConflict } from "../commit/conflict.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { type KeyLike, keyOf, localKeyString, nameOfKey } from "../shadow/resource-key.ts";
import {
	putRecord,
	ResourceShadow,
	readRecord,
	recordOf,
	type StoredRecord,
	shadowOf,
} from "../shadow/shadow-records.ts";
import { deriveReferences } from "./derive-references.ts";
import { descriptorRecord } from "./descriptor-record.ts";
import { assertNoneDropped, warnOfDropped } from "./dropped-types.ts";
import { followersAsBefore, readFollowers } from "./followers.ts";
import { protocolRevision } from "./protocol-revision.ts";

/**
 * Activates a schema of references.
 *
 *     another schema ──begin: change the record that all commits assert──▶ ours, incomplete
 *     ours, incomplete ──derive every shadow again, family by family──▶ ours, complete
 *
 * Once begun, code with another schema can't commit. An interrupted pass resumes: the record contains the
 * progress of each family.
 */
export class SchemaPass {
	readonly #context: ConstraintContext;

	constructor(context: ConstraintContext) {
		this.#context = context;
	}

	/**
	 * Makes this schema the one that commits assert. Writes the record even if it is this schema already:
	 * delayed commits of a server with another schema then expect an outdated version of the record.
	 *
	 * @param dropsInUse - whether it may lack types that are served, and that other deployments reference.
	 * @returns whether another schema was active.
	 * @throws Refused FailedPrecondition if it lacks such types and may not: see `assertNoneDropped`. Nothing changes then.
	 */
	async begin({ dropsInUse = false } = {}): Promise<boolean> {
		const { descriptor, environment } = this.#context;
		let replacesOther = false;
		const next = (record: DescriptorRecord | undefined) => ({
			...(record?.fingerprint === descriptor.fingerprint
				? record
				: create(DescriptorRecordSchema, {
						fingerprint: descriptor.fingerprint,
						version: environment.self.version,
						revision: protocolRevision,
					})),
			servedTypes: [...descriptor.servedTypes],
		});
		await this.#update(next, async (record) => {
			replacesOther = record !== undefined && record.fingerprint !== descriptor.fingerprint;
			const followers = await readFollowers(this.#context, { consistency: "strong" });
			const check =
				dropsInUse || isPlanted("drop versions that other deployments reference")
					? warnOfDropped
					: assertNoneDropped;
			await check(this.#context, record?.servedTypes ?? [], followers.followers);
			return isPlanted("begin a schema without asserting the followers")
				? []
				: [followersAsBefore(followers)];
		});
		return replacesOther;
	}

	/**
	 * Derives all resources that are not derived yet, then marks the record complete.
	 *
	 * @throws Refused Unavailable if a deployment can't be reached. Retry.
	 */
	async complete(signal: AbortSignal): Promise<void> {
		while (!(await this.#passOnce(signal))) {
			signal.throwIfAborted();
		}
	}

	/**
	 * One pass from the stored progress. Each step replaces exactly the record that this pass has read or written last:
	 * otherwise another schema may have been active meanwhile, whose servers have written resources that were derived
	 * before.
	 *
	 * @returns whether the record is complete; if not, another server has changed it, and it is to be read again.
	 */
	async #passOnce(signal: AbortSignal): Promise<boolean> {
		const { logger, limits, runtime } = this.#context;
		let stored = await this.#read();
		if (stored === undefined || this.#ours(stored.value).complete) {
			return true;
		}
		for (const family of await this.#families()) {
			const key = familyKey(family);
			let after: string = stored.value.progress[key] ?? "";
			const names = (await this.#namesOf(family)).filter(({ text }) => text > after);
			for (let at = 0; at < names.length; at += limits.pageSize) {
				signal.throwIfAborted();
				const page = names.slice(at, at + limits.pageSize);
				for (const { key } of page) {
					await runtime.scheduler.turn();
					await deriveReferences(this.#context, nameOfKey(key));
				}
				after = page.at(-1)?.text ?? after;
				const progress = { ...stored.value.progress, [key]: after };
				const next = await this.#replace(stored, { ...stored.value, progress });
				if (next === undefined) {
					return false;
				}
				stored = next;
				logger.info(
					{ family: key, done: at + page.length, of: names.length },
					"derived the references of existing resources",
				);
			}
		}
		return (
			(await this.#replace(stored, { ...stored.value, complete: true, progress: {} })) !== undefined
		);
	}

	/** @throws Refused Unavailable if another schema has become active, which has its own pass. */
	#ours(record: DescriptorRecord): DescriptorRecord {
		if (record.fingerprint !== this.#context.descriptor.fingerprint) {
			throw new Refused(Code.Unavailable, "another schema of references has become active");
		}
		return record;
	}

	/** The families with references, and those whose shadows have recorded references or owners. */
	async #families(): Promise<readonly FamilyLike[]> {
		const { backend, descriptor } = this.#context;
		const families = new Map<string, FamilyLike>();
		for (const { type, family } of descriptor.referencingTypes()) {
			families.set(family, type);
		}
		const { resources } = await backend.list(
			{
				type: ResourceShadow.type,
				tenancy: { partition: "", namespace: "" },
				namePrefix: "s-",
			},
			{ consistency: "strong" },
		);
		for (const resource of resources) {
			const key = shadowOf(resource)?.shadow;
			const names = key !== undefined && key.outgoing.length + key.metaOwners.length > 0;
			if (key?.resource !== undefined && names) {
				families.set(familyKey(key.resource), key.resource);
			}
		}
		return [...families].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, family]) => family);
	}

	/** The keys of a family's resources, in the order of derivation. */
	async #namesOf(family: FamilyLike): Promise<readonly { key: KeyLike; text: string }[]> {
		const { backend } = this.#context;
		const tenancy = { partition: wildcard, namespace: wildcard };
		const { resources } = await backend.list(
			{ type: family, tenancy, namePrefix: "" },
			{ consistency: "strong" },
		);
		return (
			resources
				// Copies of other clusters' resources have no shadows.
				.flatMap(({ id, origin }) => (id === undefined || origin ? [] : [keyOf(id, "")]))
				.map((key) => ({ key, text: localKeyString(key) }))
				.sort((a, b) => (a.text < b.text ? -1 : 1))
		);
	}

	async #read(): Promise<StoredDescriptor | undefined> {
		const stored = await readRecord(this.#context.backend, descriptorRecord, {
			consistency: "strong",
		});
		return stored && descriptorOf(stored);
	}

	/** Replaces exactly the stored record. Returns `undefined` if it has changed. */
	async #replace(
		{ resource }: StoredDescriptor,
		value: DescriptorRecord,
	): Promise<StoredDescriptor | undefined> {
		const { backend, runtime } = this.#context;
		try {
			const put = putRecord(runtime, descriptorRecord, resource, { case: "descriptor", value });
			const { resources } = await backend.commit([put]);
			return resources[0] && descriptorOf(recordOf(resources[0]));
		} catch (failure) {
			if (isPlanted("continue a pass after another schema was active") && isConflict(failure)) {
				const now = await this.#read();
				const { complete, progress } = value;
				return now && this.#replace(now, { ...this.#ours(now.value), complete, progress });
			}
			if (isConflict(failure)) {
				return undefined;
			}
			throw failure;
		}
	}

	/** @param asserts - what must hold in the commit, besides that the record is as before. */
	async #update(
		change: (record: DescriptorRecord | undefined) => DescriptorRecord,
		asserts: (record: DescriptorRecord | undefined) => Promise<readonly Mutation[]>,
	): Promise<void> {
		const { backend, runtime } = this.#context;
		for (;;) {
			const stored = await readRecord(backend, descriptorRecord, { consistency: "strong" });
			const record = stored?.record.case === "descriptor" ? stored.record.value : undefined;
			const value = change(record);
			try {
				await backend.commit([
					putRecord(runtime, descriptorRecord, stored?.resource, { case: "descriptor", value }),
					...(await asserts(record)),
				]);
				return;
			} catch (failure) {
				if (!isConflict(failure)) {
					throw failure;
				}
			}
		}
	}
}

/** The record of the active schema, as it is stored. */
interface StoredDescriptor {
	readonly resource: Resource;
	readonly value: DescriptorRecord;
}

function descriptorOf({ resource, record }: StoredRecord): StoredDescriptor | undefined {
	return record.case === "descriptor" ? { resource, value: record.value } : undefined;
}

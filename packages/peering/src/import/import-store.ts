import { create, equals } from "@bufbuild/protobuf";
import {
	type ID,
	NamespaceSchema,
	OriginSchema,
	PartitionSchema,
	type Resource,
	ResourceSchema,
} from "@plinth/proto";
import {
	type ImportRecord,
	ImportRecordSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import {
	addFinalizer,
	displayName,
	type FamilyLike,
	familyKey,
	hasFinalizer,
	idOf,
	isMarkedForDeletion,
	Namespace,
	nameKey,
	newUlid,
	Partition,
	resourceOf,
	tenancyFinalizer,
} from "@plinth/resource";
import { type Fence, type Runtime, scheduleAfterInput, sleep } from "@plinth/runtime";
import type { Mutation, StorageBackend, TenancyUnit } from "@plinth/storage";
import { type PeeringRecords, removalOf, type Stored } from "../records/peering-records.ts";
import { compareVersions } from "../versions.ts";

/** The references to copies, in the deployment that has the copies. */
export interface CopyReferences {
	/** The storage that applies the rules of references to what it deletes. */
	readonly store: Pick<StorageBackend, "commit">;
	/** An assert that nothing references a resource, about the record that has its references. */
	unreferenced(id: ID): Mutation;
}

/** The storage of imports. */
export interface ImportStorage {
	/** Beside references: a copy that nothing references has no record of them. */
	readonly backend: StorageBackend;
	/** By default, copies are never referenced. */
	readonly references?: CopyReferences | undefined;
	readonly records: PeeringRecords;
	readonly runtime: Runtime;
	/** Of the lease under which all imports run. */
	readonly fence: Fence;
	/** The copies that one import stores, with their namespaces. */
	readonly maxCopies: number;
}

/** A commit would store more than an import may have. */
export class TooManyCopies extends Error {
	override readonly name = "TooManyCopies";
}

/** The partition of an import exists, and the import has not created it. */
export class PartitionTaken extends Error {
	override readonly name = "PartitionTaken";
}

/** What is removed waits for the resources that reference it, or that it owns. */
class CopyReferenced extends Error {
	override readonly name = "CopyReferenced";
}

/** The copies that one commit removes, with two mutations each. A storage allows 100 mutations. */
const removalsPerCommit = 45;

/** How long an import that needs a name waits until what has it is gone, in milliseconds, before it tries again. */
const referencesMs = 5_000;

/**
 * What one import has stored: the copies, and the record of its progress. Each commit carries the fence.
 *
 * - The copies of a peer are in a partition that the import has created, with their namespaces. Each commit asserts that it
 *   is the one.
 * - Copies of another region, whose record names that, have the region in their names. They need no partition here, and the
 *   partition of that name, if there is one, is not touched.
 */
export class ImportStore {
	readonly #storage: ImportStorage;
	#stored: Stored<ImportRecord>;
	/** Whether empty namespaces were removed since the record was read. */
	#hasMadeRoom = false;

	private constructor(storage: ImportStorage, stored: Stored<ImportRecord>) {
		this.#storage = storage;
		this.#stored = stored;
	}

	/** Opens what is stored of an import, or begins with the record. */
	static async open(storage: ImportStorage, initial: ImportRecord): Promise<ImportStore> {
		const { records, backend, fence } = storage;
		const kind = kindOf(initial);
		const stored = await records.get(kind, initial.importUid);
		if (stored !== undefined) {
			return new ImportStore(storage, stored);
		}
		const put = records.put(kind, initial.importUid, initial);
		const { resources } = await backend.commit([put], { fence });
		return new ImportStore(storage, { value: initial, resource: resources[0] ?? put.resource });
	}

	/** Opens a record that was read. */
	static of(storage: ImportStorage, stored: Stored<ImportRecord>): ImportStore {
		return new ImportStore(storage, stored);
	}

	/**
	 * Reads the record again. To be called before each stream: a commit whose outcome is not known may have been applied.
	 *
	 * @throws StorageUnavailable; Error if the record is gone.
	 */
	async reload(): Promise<void> {
		this.#hasMadeRoom = false;
		const { importUid } = this.record;
		const stored = await this.#storage.records.get(kindOf(this.record), importUid);
		if (stored === undefined) {
			throw new Error(`the record of ${this.#writer} is gone`);
		}
		this.#stored = stored;
	}

	/** The progress, as it is stored. */
	get record(): ImportRecord {
		return this.#stored.value;
	}

	/** Whether nothing of the import is stored but its record. */
	get isEmpty(): boolean {
		return (this.#isRegional ? this.record.incarnation : this.record.partitionUid) === "";
	}

	get #isRegional(): boolean {
		return this.record.region !== "";
	}

	/** Where the copies are. */
	get #unit(): TenancyUnit {
		return unitOf(this.record);
	}

	/**
	 * Stores copies and records the progress, in one commit; in none if nothing changes. A copy of a former incarnation of an
	 * original is removed before, with all that references it. Nothing else is removed: a storage has no limit for the growth by a
	 * commit that deletes.
	 *
	 * @param copies - without uids and versions.
	 * @throws TooManyCopies: nothing is stored then. CopyReferenced.
	 */
	async commit(copies: readonly Resource[], progress: Partial<ImportRecord>): Promise<void> {
		const { runtime } = this.#storage;
		const puts: (Mutation & { readonly op: "put" })[] = [];
		const replaced: Resource[] = [];
		const namespaces = new Map<string, Mutation>();
		for (const copy of copies) {
			const stored = await this.#lookup(copy);
			const isSame =
				stored !== undefined &&
				stored.origin?.uid === copy.origin?.uid &&
				// What has been removed, and waits for the references to it, does not come back.
				!isMarkedForDeletion(stored);
			if (isSame && (isOlder(copy, stored) || sameCopy(stored, copy))) {
				continue;
			}
			if (stored !== undefined && !isSame) {
				// Another incarnation of the original: the copy gets another uid too.
				replaced.push(stored);
			}
			const uid = isSame ? stored?.id?.uid : undefined;
			const resource = {
				...copy,
				...(copy.id && { id: { ...copy.id, uid: uid ?? newUlid(runtime) } }),
			};
			puts.push({ op: "put", resource, expectedVersion: isSame ? (stored?.version ?? "") : "" });
			await this.#addNamespace(copy, namespaces);
		}
		await this.#removeUntilGone(() => this.#storedOf(replaced));
		const created = puts.filter(({ expectedVersion }) => expectedVersion === "");
		await this.#checkCount(created.length + namespaces.size, copies);
		const mutations = [...puts, ...namespaces.values()];
		if (mutations.length > 0 || Object.keys(progress).length > 0) {
			await this.#commit(mutations, progress);
		}
	}

	/**
	 * Checks the number of copies and namespaces. When it is too large, namespaces whose copies are gone are removed: once for
	 * each stream, since all are looked at.
	 */
	async #checkCount(added: number, copies: readonly Resource[]): Promise<void> {
		const { maxCopies } = this.#storage;
		if (added === 0 || (await this.#count()) + added <= maxCopies) {
			return;
		}
		if (!this.#hasMadeRoom) {
			this.#hasMadeRoom = true;
			await this.#removeEmptyNamespaces(copies);
		}
		if ((await this.#count()) + added > maxCopies) {
			throw new TooManyCopies(
				this.#isRegional
					? `the region ${this.record.region} offers more than the ${maxCopies} copies of one partition that may be stored: name it in the policies of namespaces instead`
					: `the other cluster exports more than the ${maxCopies} copies and namespaces that an import may have: export less, or divide it among several Exports`,
			);
		}
	}

	/** The number of copies and namespaces. */
	async #count(): Promise<number> {
		const counts = await this.#storage.backend.countByTypeIn(this.#unit, { consistency: "strong" });
		return counts.values().reduce((sum, count) => sum + count, 0);
	}

	/**
	 * Removes the namespaces of the import that have no copies, and get none of the given ones. One that is referenced stays, or
	 * that is being removed: the source may still have it, and it may get copies again.
	 */
	async #removeEmptyNamespaces(copies: readonly Resource[]): Promise<void> {
		if (this.#isRegional) {
			return;
		}
		const { backend, fence, references, runtime } = this.#storage;
		const { partition } = this.record;
		const needed = new Set(copies.map(({ id }) => id?.tenancy?.namespace));
		for await (const page of this.#copiesOf(Namespace.type)) {
			const deletions: Mutation[] = [];
			for (const resource of page) {
				const namespace = resource.id?.name ?? "";
				const counts = await backend.countByTypeIn({ partition, namespace });
				const unreferenced = resource.id && references?.unreferenced(resource.id);
				const isReferenced =
					unreferenced?.op === "assert" && (await backend.lookup(unreferenced.id)) !== undefined;
				const isKept = counts.size > 0 || needed.has(namespace) || isReferenced;
				const deletion = deletionOf(resource);
				if (deletion !== undefined && !isKept && !isMarkedForDeletion(resource)) {
					deletions.push(deletion, ...(unreferenced === undefined ? [] : [unreferenced]));
				}
			}
			if (deletions.length > 0) {
				const mutations = [...deletions, ...this.#assertPartition()];
				await backend.commit(mutations, { fence, writtenBy: this.#writer });
			}
			// There may be many, and all of them in memory.
			await new Promise<void>((resolve) => scheduleAfterInput(runtime.scheduler, resolve));
		}
	}

	/** Whether a copy of that name is stored, and the copy. */
	async find(id: Resource["id"]): Promise<Resource | undefined> {
		const stored = id && (await this.#storage.backend.lookup(id));
		return stored?.origin === undefined ? undefined : stored;
	}

	/** Records progress. */
	async recordProgress(progress: Partial<ImportRecord>): Promise<void> {
		await this.#commit([], progress);
	}

	/**
	 * Creates the partition of the import, unless the import has created it. Copies of another region need none.
	 *
	 * @param origin - the cluster that is copied from.
	 * @throws PartitionTaken.
	 */
	async createPartition(cluster: string): Promise<void> {
		if (this.#isRegional) {
			return;
		}
		const { backend, runtime } = this.#storage;
		const { partition, peering, partitionUid } = this.record;
		const id = idOf(Partition, partition);
		const stored = await backend.lookup(id, { consistency: "strong" });
		if (stored?.id?.uid === partitionUid && partitionUid !== "") {
			return;
		}
		const counts = await backend.countByTypeIn({ partition }, { consistency: "strong" });
		if (stored !== undefined || counts.size > 0) {
			throw new PartitionTaken(
				`the partition ${partition} exists: an import creates its partition, and alone writes there; name another one, or delete it`,
			);
		}
		const uid = newUlid(runtime);
		const resource = resourceOf(Partition, { id: { ...id, uid }, data: create(PartitionSchema) });
		addFinalizer(resource, tenancyFinalizer);
		resource.generation = newUlid(runtime);
		resource.origin = create(OriginSchema, { cluster, peering });
		const positions = { positions: [], generation: "", incarnation: "" };
		await this.#commit(
			[{ op: "put", resource, expectedVersion: "" }],
			{
				partitionUid: uid,
				...positions,
			},
			false,
		);
	}

	/** Removes the copies of a type family that are not in the set of `nameKey`s. */
	async removeOthers(family: FamilyLike, kept: ReadonlySet<string>): Promise<void> {
		for await (const page of this.#copiesOf(family)) {
			await this.#remove(page.filter(({ id }) => id !== undefined && !kept.has(nameKey(id))));
		}
	}

	/**
	 * Removes the copies of all type families but those. Their positions go first: if only some of the copies are removed, and
	 * the type is streamed again, all of it is requested.
	 */
	async removeFamilies(kept: ReadonlySet<string>): Promise<void> {
		const positions = this.record.positions.filter(({ type }) => type && kept.has(familyKey(type)));
		if (positions.length < this.record.positions.length) {
			await this.recordProgress({ positions });
		}
		for (const family of await this.#families()) {
			const isKept = kept.has(familyKey(family)) || isNamespace(family);
			if (!isKept) {
				await this.removeOthers(family, new Set());
			}
		}
	}

	/**
	 * Removes all copies, their namespaces and the partition: what the import has created, and nothing else.
	 *
	 * @throws CopyReferenced if something is left that is referenced: all else that is inside the partition is removed then.
	 */
	async removeAll(progress: Partial<ImportRecord>): Promise<void> {
		if (this.#isRegional) {
			await this.removeFamilies(new Set());
			await this.#commit([], { ...progress, ...nothingStored });
			return;
		}
		const { backend } = this.#storage;
		const { partition, partitionUid } = this.record;
		const stored = await backend.lookup(idOf(Partition, partition), { consistency: "strong" });
		if (partitionUid !== "" && stored?.id?.uid === partitionUid) {
			await this.removeFamilies(new Set());
			await this.#removeUntilGone(() => this.#someCopies());
			await this.removeOthers(Namespace.type, new Set());
			await this.#removeUntilGone(() => this.#someOf(Namespace.type));
			const removals = await this.#deletionsOf([stored]);
			if (removals.length === 0) {
				await this.#removeUntilGone(() => this.#storedOf([stored]), false);
			}
			await this.#commit(removals, { ...progress, ...nothingStored }, false);
		} else {
			await this.#commit([], { ...progress, ...nothingStored }, false);
		}
	}

	/** Forgets the import. Nothing of it must be stored. */
	async forget(): Promise<void> {
		const { backend, fence } = this.#storage;
		await backend.commit([removalOf(this.#stored)], { fence });
	}

	/** The number of copies, by type key. */
	async counts(): Promise<ReadonlyMap<string, number>> {
		return copyCounts(this.#storage.backend, this.record);
	}

	async #families(): Promise<readonly FamilyLike[]> {
		const { backend } = this.#storage;
		const counts = await backend.countByTypeIn(this.#unit, { consistency: "strong" });
		return [...counts.keys()].map((key) => {
			const [group = "", , kind = ""] = key.split(".");
			return { group, kind };
		});
	}

	/** The copies of a family, in pages. */
	async *#copiesOf(family: FamilyLike): AsyncGenerator<readonly Resource[]> {
		const { backend } = this.#storage;
		const { partition, region } = this.#unit;
		const query = { type: family, tenancy: { partition, namespace: "*" }, namePrefix: "", region };
		const snapshot = await backend.snapshot(query, { consistency: "strong", heldBy: {} });
		try {
			let page: Resource[] = [];
			for (const resource of snapshot.resources()) {
				if (resource.origin !== undefined) {
					page.push(resource);
				}
				if (page.length === removalsPerCommit) {
					yield page;
					page = [];
				}
			}
			yield page;
		} finally {
			snapshot.release();
		}
	}

	/** Some of the copies that are stored. */
	async #someCopies(): Promise<readonly Resource[]> {
		for (const family of await this.#families()) {
			const copies = isNamespace(family) ? [] : await this.#someOf(family);
			if (copies.length > 0) {
				return copies;
			}
		}
		return [];
	}

	async #someOf(family: FamilyLike): Promise<readonly Resource[]> {
		for await (const page of this.#copiesOf(family)) {
			return page;
		}
		return [];
	}

	/** Those of the resources that are still stored, as they are now. */
	async #storedOf(resources: readonly Resource[]): Promise<readonly Resource[]> {
		const left: Resource[] = [];
		for (const { id } of resources) {
			const stored = id && (await this.#storage.backend.lookup(id));
			if (stored?.id?.uid === id?.uid && stored !== undefined) {
				left.push(stored);
			}
		}
		return left;
	}

	/**
	 * Removes what is left until nothing is.
	 *
	 * @throws CopyReferenced if that takes long; Refused if it is not possible.
	 */
	async #removeUntilGone(left: () => Promise<readonly Resource[]>, asserts?: false): Promise<void> {
		const { runtime } = this.#storage;
		for (let pauseMs = 0, waitedMs = 0; ; pauseMs = Math.max(20, pauseMs * 2)) {
			const resources = await left();
			const [first] = resources;
			if (first === undefined) {
				return;
			}
			if (waitedMs > referencesMs) {
				throw new CopyReferenced(
					`${first.id ? displayName(first.id) : "a copy"} is being removed, and waits for the resources that reference it: see plinth refs`,
				);
			}
			await this.#remove(resources, asserts);
			if (pauseMs > 0) {
				await sleep(runtime.clock, pauseMs);
				waitedMs += pauseMs;
			}
		}
	}

	/**
	 * Removes copies, and records the progress, if there is any, in the same commit. Those that are referenced are marked, and removed
	 * by the references; this does not wait for them.
	 */
	async remove(copies: readonly Resource[], progress?: Partial<ImportRecord>): Promise<void> {
		if (progress === undefined) {
			await this.#remove(copies);
		} else {
			await this.#commit(await this.#deletionsOf(copies), progress);
		}
	}

	async #remove(copies: readonly Resource[], asserts = true): Promise<void> {
		const { backend, fence } = this.#storage;
		const deletions = await this.#deletionsOf(copies);
		if (deletions.length > 0) {
			const mutations = [...deletions, ...(asserts ? this.#assertPartition() : [])];
			await backend.commit(mutations, { fence, writtenBy: this.#writer });
		}
	}

	/**
	 * The mutations that remove what nothing references: they assert that. Everything else is marked for deletion when this
	 * returns, and is gone once the rules of the references are applied. This does not wait for that, since a resource that is
	 * deleted with a copy may have finalizers, or be referenced by BLOCK itself.
	 *
	 * @throws Refused if a new schema has made a reference to it BLOCK.
	 */
	async #deletionsOf(copies: readonly Resource[]): Promise<readonly Mutation[]> {
		const { backend, references, fence } = this.#storage;
		const deletions: Mutation[] = [];
		for (const copy of copies) {
			const deletion = deletionOf(copy);
			const unreferenced = copy.id && references?.unreferenced(copy.id);
			if (deletion === undefined) {
				continue;
			}
			const isReferenced =
				unreferenced?.op === "assert" && (await backend.lookup(unreferenced.id)) !== undefined;
			if (isMarkedForDeletion(copy) ? hasFinalizer(copy, tenancyFinalizer) : isReferenced) {
				// A deletion marks it; one of what is marked removes the finalizer of tenancies, which no controller does here.
				await references?.store.commit([deletion], { fence, writtenBy: this.#writer });
			} else if (!isMarkedForDeletion(copy)) {
				deletions.push(deletion, ...(unreferenced === undefined ? [] : [unreferenced]));
			}
		}
		return deletions;
	}

	async #commit(
		mutations: readonly Mutation[],
		progress: Partial<ImportRecord>,
		asserts = mutations.length > 0,
	): Promise<void> {
		const { backend, records, fence } = this.#storage;
		const value = create(ImportRecordSchema, { ...this.record, ...progress });
		const put = records.put(kindOf(value), value.importUid, value, this.#stored);
		const all = [put, ...mutations, ...(asserts ? this.#assertPartition() : [])];
		const { resources } = await backend.commit(all, { fence, writtenBy: this.#writer });
		this.#stored = { value, resource: resources[0] ?? put.resource };
	}

	#assertPartition(): readonly Mutation[] {
		const { partition, partitionUid } = this.record;
		return this.#isRegional
			? []
			: [{ op: "assert", id: idOf(Partition, partition), uid: partitionUid }];
	}

	get #writer(): string {
		const { region, partition } = this.record;
		return this.#isRegional
			? `copies of partition ${partition} of region ${region}`
			: `import ${this.record.import}`;
	}

	async #lookup(copy: Resource): Promise<Resource | undefined> {
		return copy.id && this.#storage.backend.lookup(copy.id);
	}

	/** The mutation that creates the namespace of a copy, if it is missing. */
	async #addNamespace({ id, origin }: Resource, added: Map<string, Mutation>): Promise<void> {
		const { backend, runtime } = this.#storage;
		const { namespace = "", partition = "" } = id?.tenancy ?? {};
		if (this.#isRegional || namespace === "" || added.has(namespace)) {
			return;
		}
		const namespaceId = idOf(Namespace, namespace, { partition });
		if ((await backend.lookup(namespaceId)) !== undefined) {
			return;
		}
		const resource = resourceOf(Namespace, {
			id: { ...namespaceId, uid: newUlid(runtime) },
			data: create(NamespaceSchema),
		});
		addFinalizer(resource, tenancyFinalizer);
		resource.generation = newUlid(runtime);
		resource.origin = create(OriginSchema, {
			cluster: origin?.path.at(-1) ?? "",
			peering: this.record.peering,
		});
		added.set(namespace, { op: "put", resource, expectedVersion: "" });
	}
}

/** The number of copies that an import has stored, by type key. */
export async function copyCounts(
	backend: Pick<StorageBackend, "countByTypeIn">,
	record: ImportRecord,
): Promise<ReadonlyMap<string, number>> {
	if (record.region === "" && record.partitionUid === "") {
		return new Map();
	}
	const counts = await backend.countByTypeIn(unitOf(record));
	return new Map([...counts].filter(([key]) => key !== Namespace.key));
}

/** Where the copies of an import are. */
function unitOf({ partition, region }: ImportRecord): TenancyUnit {
	return region === "" ? { partition } : { partition, region };
}

function kindOf({ region }: ImportRecord): "import" | "regional" {
	return region === "" ? "import" : "regional";
}

const nothingStored = { partitionUid: "", positions: [], generation: "", incarnation: "" };

function isNamespace({ group, kind }: FamilyLike): boolean {
	return group === Namespace.type.group && kind === Namespace.type.kind;
}

function deletionOf({ id, version }: Resource): Mutation | undefined {
	return id && { op: "delete", id, expectedVersion: version };
}

/** Whether a copy is of an older version of the original than the stored one: it was sent again. */
function isOlder({ origin }: Resource, stored: Resource): boolean {
	return (
		origin !== undefined &&
		origin.incarnation === stored.origin?.incarnation &&
		compareVersions(origin.version, stored.origin.version) < 0
	);
}

/** Whether a stored copy has the content of a new one. */
function sameCopy(stored: Resource, copy: Resource): boolean {
	const { id } = copy;
	const uid = stored.id?.uid ?? "";
	return equals(
		ResourceSchema,
		{ ...stored, version: "" },
		{ ...copy, version: "", ...(id && { id: { ...id, uid } }) },
	);
}

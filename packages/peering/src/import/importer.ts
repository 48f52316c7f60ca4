import { create } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import type {
	Import as ImportMessage,
	Peering as PeeringMessage,
} from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import {
	type ImportRecord,
	ImportRecordSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { decodeShared, type ResourceType, type TypeRegistry } from "@plinth/resource";
import { CopyCheck } from "@plinth/resource-service";
import {
	type LeaseHold,
	type LeaseManager,
	type Logger,
	linkedSignal,
	type Runtime,
} from "@plinth/runtime";
import { Fenced, type StorageBackend } from "@plinth/storage";
import type { ConnectPeer } from "../connect.ts";
import { peeringLimits } from "../limits.ts";
import type { OwnIdentity } from "../records/cluster-identity.ts";
import { PeeringRecords } from "../records/peering-records.ts";
import type { PeerAccess } from "../trust/peer-access.ts";
import type { PeerCredentials } from "../trust/peer-credentials.ts";
import { Import, Peering } from "../types.ts";
import { messageOf, stateOf } from "./failure-state.ts";
import { ImportRun } from "./import-run.ts";
import { type CopyReferences, ImportStore } from "./import-store.ts";
import { LiveImport } from "./live-import.ts";
import { peerSource } from "./peer-source.ts";
import { runUnderLease } from "./run-under-lease.ts";
import { type RunningState, runningState } from "./running-state.ts";
import { WakeUp } from "./wake-up.ts";

/** Options of `Importer`. */
export interface ImporterOptions {
	/** Beside references. */
	readonly backend: StorageBackend;
	readonly references: CopyReferences | undefined;
	readonly registry: TypeRegistry;
	readonly identity: OwnIdentity;
	readonly access: PeerAccess;
	readonly credentials: PeerCredentials;
	readonly connect: ConnectPeer;
	readonly leases: LeaseManager;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** See `ImportStorage`. */
	readonly maxCopies: number;
	/** Reports the state of an Import in its status. */
	readonly report: (
		resource: Resource,
		live: Pick<LiveImport, "state" | "message">,
		record: ImportRecord,
		hold: LeaseHold,
	) => Promise<void>;
}

/** The lease of the server that runs all imports. */
const leaseName = "peering-imports";

/** How often the imports are compared with their resources, besides each change. In milliseconds. */
const intervalMs = 30_000;

/** How long imports wait before they try again to start one, or to remove one that is gone, in milliseconds. */
const retryIntervalMs = 5_000;

/** A resource of an Import or a Peering, decoded. */
interface Declared<Data> {
	readonly resource: Resource;
	readonly uid: string;
	readonly name: string;
	readonly data: Data;
}

/** The state of an import that this server runs. */
export interface RunningImport extends RunningState {
	/** The name of the Import. */
	readonly name: string;
}

/** A run of an import. */
interface Running {
	/** What it was started for: if this changes, it is started again. */
	readonly key: string;
	readonly live: LiveImport;
	readonly store: ImportStore;
	readonly end: AbortController;
	readonly ended: Promise<void>;
}

/** The time for which this server holds the lease. */
interface Lead {
	readonly hold: LeaseHold;
	/** Aborts when the lease is lost, and after `fail`. */
	readonly signal: AbortSignal;
	/** Wakes the comparison of imports with their resources. */
	readonly wakeUp: WakeUp;
	/** Ends all imports, which begin again once the lease is acquired again. */
	readonly fail: (reason: unknown) => void;
}

/** An import that could not be started. */
interface NotStarted {
	/** Its state says why. */
	readonly live: LiveImport;
	/** As it is stored, or with which it was to begin. */
	readonly record: ImportRecord;
}

/**
 * Runs all imports of a cluster, on the server that holds the lease. Each of its commits carries the fence.
 *
 * What is stored of an import has a record. An import whose resource is gone, or that is to be stored in another partition or
 * comes from another peering, is found by its record and removed, also after a crash: the record goes last.
 */
export class Importer {
	readonly #options: ImporterOptions;
	readonly #records: PeeringRecords;
	readonly #check: CopyCheck;
	readonly #running = new Map<string, Running>();
	/** The imports that could not be started at the last attempt, by the uid of the Import. */
	readonly #notStarted = new Map<string, NotStarted>();

	constructor(options: ImporterOptions) {
		this.#options = options;
		this.#records = new PeeringRecords(options.backend, options.runtime);
		this.#check = new CopyCheck(options.registry);
	}

	/** What this server knows of an import that it runs, or could not start, by the uid of the Import. */
	live(importUid: string): LiveImport | undefined {
		return this.#running.get(importUid)?.live ?? this.#notStarted.get(importUid)?.live;
	}

	/** The records of the imports that this server could not start: they may not be stored. */
	get notStarted(): readonly ImportRecord[] {
		return [...this.#notStarted.values()].map(({ record }) => record);
	}

	/** The state of each import that this server runs. */
	async state(): Promise<readonly RunningImport[]> {
		return Promise.all(
			[...this.#running.values()].map(async (each) => ({
				name: each.store.record.import,
				...(await runningState(each)),
			})),
		);
	}

	/** Runs until the signal aborts. Waits for the lease only once there is a Peering or an Import. Never rejects. */
	async run(signal: AbortSignal): Promise<void> {
		await runUnderLease({
			...this.#options,
			...{ leaseName, signal, what: "the imports are started again" },
			isNeeded: (ended) => this.#firstDeclared(ended),
			lead: (hold, ended) => this.#lead(hold, ended),
		});
	}

	/** Resolves when there is a Peering or an Import, or a record of what an import has stored. */
	async #firstDeclared(signal: AbortSignal): Promise<void> {
		if ((await this.#records.all("import")).length > 0) {
			return;
		}
		const ended = new AbortController();
		using linked = linkedSignal(signal, ended.signal);
		try {
			await Promise.race([Import, Peering].map((type) => this.#first(type, linked.signal)));
		} finally {
			ended.abort(new Error("there is one"));
		}
	}

	async #first(type: ResourceType, signal: AbortSignal): Promise<void> {
		for await (const event of this.#options.backend.watchList(allOf(type), { signal })) {
			if (event.kind === "upsert") {
				return;
			}
		}
	}

	async #lead(hold: LeaseHold, signal: AbortSignal): Promise<void> {
		const ended = new AbortController();
		using linked = linkedSignal(signal, ended.signal);
		using wakeUp = new WakeUp(this.#options.runtime.clock);
		const lead: Lead = {
			...{ hold, wakeUp, signal: linked.signal },
			fail: (reason) => ended.abort(reason),
		};
		for (const type of [Import, Peering]) {
			this.#follow(type, lead).catch(lead.fail);
		}
		try {
			for (;;) {
				const isComplete = await this.#reconcile(lead);
				await wakeUp.wait(isComplete ? intervalMs : retryIntervalMs, lead.signal);
			}
		} finally {
			ended.abort(new Error("the imports have ended"));
			const all = [...this.#running.values()];
			this.#running.clear();
			this.#notStarted.clear();
			for (const { end } of all) {
				end.abort(new Error("the imports have ended"));
			}
			await Promise.all(all.map((each) => each.ended));
		}
	}

	async #follow(type: ResourceType, { wakeUp, signal }: Lead): Promise<void> {
		for await (const event of this.#options.backend.watchList(allOf(type), { signal })) {
			if (event.kind === "upsert" || event.kind === "delete") {
				wakeUp.wake();
			}
		}
	}

	/**
	 * Compares what runs and what is stored with the resources. Returns whether all imports are started that should be, and
	 * nothing is left that should be gone. An import that can't be started, because a full storage has no room for its record
	 * for example, is tried again later, and holds up nothing else: others may receive the removals that make room.
	 */
	async #reconcile(lead: Lead): Promise<boolean> {
		const { access, credentials, logger } = this.#options;
		const imports = await this.#declared<ImportMessage>(Import);
		const peerings = await this.#declared<PeeringMessage>(Peering);
		const byName = new Map(peerings.map((each) => [each.name, each]));
		const ending = await this.#removeUndeclared(imports, byName, lead);
		const waiting = imports.filter(({ uid }) => !ending.has(uid));
		for (const uid of this.#notStarted.keys()) {
			if (!waiting.some((each) => each.uid === uid)) {
				this.#notStarted.delete(uid);
			}
		}
		for (const each of waiting) {
			lead.signal.throwIfAborted();
			await this.#startAndReport(each, byName.get(each.data.peer), lead);
		}
		for (const what of [access, credentials]) {
			await what.forgetRemoved().catch((err: unknown) => {
				logger.warn({ err }, "peerings that were deleted are not forgotten yet");
			});
		}
		for (const { uid, name } of peerings) {
			await credentials.rotateIfDue({ uid }).catch((err: unknown) => {
				logger.warn({ peering: name, err }, "the credential was not replaced: it stays valid");
			});
		}
		return ending.size === 0 && this.#notStarted.size === 0;
	}

	/** Starts an import, unless it runs, and reports its state. @throws Fenced. */
	async #startAndReport(
		declared: Declared<ImportMessage>,
		peering: Declared<PeeringMessage> | undefined,
		lead: Lead,
	): Promise<void> {
		const { report, logger } = this.#options;
		const { resource, uid, name } = declared;
		const initial = recordOf(declared, peering);
		try {
			await this.#start(declared, peering, initial, lead);
			this.#notStarted.delete(uid);
		} catch (err) {
			if (err instanceof Fenced) {
				throw err;
			}
			if (this.#running.has(uid)) {
				logger.warn({ import: name, err }, "import not compared with its Peering");
			} else {
				await this.#reportNotStarted(declared, initial, err, lead);
				return;
			}
		}
		const running = this.#running.get(uid);
		if (running !== undefined) {
			await report(resource, running.live, running.store.record, lead.hold);
		}
	}

	/** Keeps and reports why an import could not be started. */
	async #reportNotStarted(
		{ resource, uid, name }: Declared<ImportMessage>,
		initial: ImportRecord,
		err: unknown,
		{ hold }: Lead,
	): Promise<void> {
		const { report, runtime, logger } = this.#options;
		const record = (await this.#records.get("import", uid))?.value ?? initial;
		const live = new LiveImport(runtime.clock);
		live.restore(record);
		live.state = stateOf(err);
		live.message = messageOf(err);
		if (this.#notStarted.get(uid)?.live.message !== live.message) {
			logger.warn({ import: name, err }, "import not started");
		}
		this.#notStarted.set(uid, { live, record });
		await report(resource, live, record, hold);
	}

	/**
	 * Removes what is stored of imports that are gone, or that are to be stored elsewhere. Returns the uids of those of which
	 * something is left: they are tried again later, and hold up no others.
	 */
	async #removeUndeclared(
		imports: readonly Declared<ImportMessage>[],
		peerings: ReadonlyMap<string, Declared<PeeringMessage>>,
		{ hold }: Lead,
	): Promise<ReadonlySet<string>> {
		const { logger } = this.#options;
		const ending = new Set<string>();
		for (const stored of await this.#records.all("import")) {
			const { value } = stored;
			const declared = imports.find(({ uid }) => uid === value.importUid);
			const peering = declared && peerings.get(declared.data.peer);
			if (
				declared?.data.partition === value.partition &&
				(peering?.uid ?? "") === value.peeringUid
			) {
				continue;
			}
			await this.#stop(value.importUid);
			const again = await this.#records.get("import", value.importUid);
			if (again !== undefined) {
				const store = ImportStore.of(this.#storage(hold), again);
				try {
					await store.removeAll({});
					await store.forget();
					logger.info({ import: value.import, partition: value.partition }, "import removed");
				} catch (err) {
					if (err instanceof Fenced) {
						throw err;
					}
					ending.add(value.importUid);
					logger.warn(
						{ import: value.import, partition: value.partition, err },
						"import not removed",
					);
				}
			}
		}
		return ending;
	}

	async #start(
		{ resource, uid, name, data }: Declared<ImportMessage>,
		peering: Declared<PeeringMessage> | undefined,
		initial: ImportRecord,
		{ hold, wakeUp, signal, fail }: Lead,
	): Promise<void> {
		const { identity, runtime, credentials, connect, registry, logger } = this.#options;
		const established = peering && (await credentials.of(peering.uid));
		const key = [
			...[resource.generation, peering?.uid, peering?.resource.generation],
			established?.cluster,
		].join("/");
		if (this.#running.get(uid)?.key === key) {
			return;
		}
		await this.#stop(uid);
		const store = await ImportStore.open(this.#storage(hold), initial);
		if (store.record.export !== data.export) {
			await store.recordProgress({ export: data.export });
		}
		const live = new LiveImport(runtime.clock);
		const end = new AbortController();
		const source = peerSource({
			peering: peering
				? { name: peering.name, isDeclared: true, ...peering.data }
				: { name: data.peer, isDeclared: false, address: "", ca: "" },
			target: () => store.record,
			credential: async () => peering && credentials.of(peering.uid),
			ownCluster: (await identity.get()).uid,
			connect,
		});
		const run = new ImportRun({
			...{ store, live, source, registry, runtime, logger, check: this.#check },
			fields: { import: name },
			recordMs: () => peeringLimits.recordMs,
			onState: () => wakeUp.wakeSoon(),
		});
		const both = AbortSignal.any([signal, end.signal]);
		const ended = run.run(both).catch((failure: unknown) => {
			if (!both.aborted) {
				fail(failure);
			}
		});
		this.#running.set(uid, { key, live, store, end, ended: ended.then(() => {}) });
	}

	async #stop(uid: string): Promise<void> {
		const running = this.#running.get(uid);
		if (running !== undefined) {
			this.#running.delete(uid);
			running.end.abort(new Error("the import has changed"));
			await running.ended;
		}
	}

	#storage({ fence }: LeaseHold) {
		const { backend, references, runtime, maxCopies } = this.#options;
		return { backend, references, runtime, maxCopies, records: this.#records, fence };
	}

	async #declared<Data>(type: ResourceType): Promise<readonly Declared<Data>[]> {
		const { resources } = await this.#options.backend.list(allOf(type), { consistency: "strong" });
		return resources.map((resource) => ({
			resource,
			uid: resource.id?.uid ?? "",
			name: resource.id?.name ?? "",
			data: decodeShared(type, resource).data as Data,
		}));
	}
}

/** The record with which an import begins. */
function recordOf(
	{ uid, name, data }: Declared<ImportMessage>,
	peering: Declared<PeeringMessage> | undefined,
): ImportRecord {
	return create(ImportRecordSchema, {
		...{ importUid: uid, import: name, partition: data.partition },
		...{ peering: data.peer, peeringUid: peering?.uid ?? "", export: data.export },
	});
}

function allOf(type: ResourceType) {
	return { type: type.type, tenancy: { partition: "", namespace: "" }, namePrefix: "" };
}

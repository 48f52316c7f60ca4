import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
	type ImportRecord,
	ImportRecordSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { labelProblem, type TypeRegistry } from "@plinth/resource";
import { CopyCheck } from "@plinth/resource-service";
import {
	type LeaseHold,
	type LeaseManager,
	type Logger,
	linkedSignal,
	type Runtime,
	sleep,
} from "@plinth/runtime";
import { Exhausted, type StorageBackend } from "@plinth/storage";
import { ImportRun } from "../import/import-run.ts";
import { ImportStore } from "../import/import-store.ts";
import { LiveImport } from "../import/live-import.ts";
import { runUnderLease } from "../import/run-under-lease.ts";
import { type RunningState, runningState } from "../import/running-state.ts";
import { peeringLimits } from "../limits.ts";
import { PeeringRecords, type Stored } from "../records/peering-records.ts";
import { OfferPolls } from "./offer-polls.ts";
import { regionSource } from "./region-source.ts";
import type { OtherRegion, OwnRegion, Regions } from "./regions.ts";

/** Options of `RegionalCopier`. */
export interface RegionalCopierOptions {
	/** Beside references: copies have no shadows. */
	readonly backend: StorageBackend;
	readonly registry: TypeRegistry;
	readonly own: Pick<OwnRegion, "service" | "region">;
	readonly regions: Regions;
	readonly leases: LeaseManager;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** The copies that are stored of one partition of a region. */
	readonly maxCopies: number;
}

/** The state of the copies of one partition of a region that this server keeps up to date. */
export interface RunningCopies extends RunningState {
	readonly region: string;
	readonly partition: string;
}

/** The lease of the server that copies from other regions. */
const leaseName = "regional-copies";

/** Copies of one partition of a region that are kept up to date. */
interface Running {
	/** The uid of the deployment that is called; empty if none is known. */
	readonly deployment: string;
	readonly live: LiveImport;
	readonly store: ImportStore;
	readonly end: AbortController;
	readonly ended: Promise<void>;
}

/**
 * Keeps copies of what other regions of the service offer to this one, on the server that holds the lease. Each of its
 * commits carries the fence.
 *
 * What is stored has a record for each region and partition. Copies are removed when the deployment of the region says that
 * it does not offer the partition, or when there is the record that it was deleted and no other one is in its place: never
 * because it can't be reached. The record goes last, so that what a crash has interrupted is found again.
 */
export class RegionalCopier {
	readonly #options: RegionalCopierOptions;
	readonly #records: PeeringRecords;
	readonly #check: CopyCheck;
	readonly #polls: OfferPolls;
	readonly #running = new Map<string, Running>();
	/** The uids in records of partitions for which a full storage has refused something last. */
	readonly #refused = new Set<string>();
	/** The deployments that may be called, by region. */
	#deployments: ReadonlyMap<string, OtherRegion> = new Map();

	constructor(options: RegionalCopierOptions) {
		this.#options = options;
		this.#records = new PeeringRecords(options.backend, options.runtime);
		this.#check = new CopyCheck(options.registry);
		this.#polls = new OfferPolls(options);
	}

	/** What this server knows of copies that it keeps up to date, by the uid in their record. */
	live(uid: string): LiveImport | undefined {
		return this.#running.get(uid)?.live;
	}

	/** The state of all copies that this server keeps up to date. */
	async state(): Promise<readonly RunningCopies[]> {
		return Promise.all(
			[...this.#running.values()].map(async (each) => {
				const { region, partition } = each.store.record;
				return { region, partition, ...(await runningState(each)) };
			}),
		);
	}

	/** Runs until the signal aborts. Never rejects. */
	run(signal: AbortSignal): Promise<void> {
		return runUnderLease({
			...this.#options,
			...{ leaseName, signal, what: "copying from other regions is started again" },
			isNeeded: (ended) => this.#firstRegion(ended),
			lead: (hold, ended) => this.#lead(hold, ended),
		});
	}

	/** Resolves when there is another region, or a record of copies. */
	async #firstRegion(signal: AbortSignal): Promise<void> {
		const { regions, runtime } = this.#options;
		while (
			(await regions.others()).length === 0 &&
			(await this.#records.all("regional")).length === 0
		) {
			await sleep(runtime.clock, peeringLimits.pollMs, signal);
		}
	}

	async #lead(hold: LeaseHold, signal: AbortSignal): Promise<void> {
		const { regions, runtime } = this.#options;
		const ended = new AbortController();
		using linked = linkedSignal(signal, ended.signal);
		const fail = (reason: unknown) => ended.abort(reason);
		try {
			for (;;) {
				const others = await regions.others();
				this.#deployments = new Map(others.map((each) => [each.region, each]));
				await this.#polls.poll(others, linked.signal);
				await this.#reconcile(hold, linked.signal, fail);
				await sleep(runtime.clock, peeringLimits.pollMs, linked.signal);
			}
		} finally {
			ended.abort(new Error("copying from other regions has ended"));
			const all = [...this.#running.values()];
			this.#running.clear();
			await Promise.all(all.map((each) => each.ended));
		}
	}

	/** Compares what runs and what is stored with what is offered. */
	async #reconcile(
		hold: LeaseHold,
		signal: AbortSignal,
		onFenced: (reason: unknown) => void,
	): Promise<void> {
		const { regions } = this.#options;
		const known = new Map<string, boolean>();
		const isDeleted = async (uid: string) => {
			const deleted = known.get(uid) ?? (await regions.isDeleted(uid));
			known.set(uid, deleted);
			return deleted;
		};
		for (const stored of await this.#records.all("regional")) {
			const { region, partition } = stored.value;
			if (await this.#isGone(stored.value, isDeleted)) {
				await this.#remove(stored, hold);
			} else {
				await this.#start(region, partition, hold, signal, onFenced);
			}
		}
		for (const [region, partitions] of this.#polls.offers) {
			for (const partition of partitions) {
				if (labelProblem(partition) === undefined) {
					const offered = { importUid: recordUid(region, partition), region, partition };
					await this.#unlessFull(offered, "no room for copies of this partition", () =>
						this.#start(region, partition, hold, signal, onFenced),
					);
				}
			}
		}
	}

	/** Whether nothing is to be kept of a partition, as far as that is known. */
	async #isGone(
		{ importUid, region, partition, deploymentUid, incarnation }: ImportRecord,
		isDeleted: Regions["isDeleted"],
	): Promise<boolean> {
		if (region === this.#options.own.region) {
			// The deployment was moved to the region: what it has there are originals.
			return true;
		}
		if (!this.#deployments.has(region)) {
			// Without an incarnation, no copies are stored.
			return incarnation === "" || (await isDeleted(deploymentUid));
		}
		// The run has asked for the partition itself, and has removed what was stored.
		const running = this.#running.get(importUid);
		return (
			running?.live.state === "NotOffered" &&
			running.store.isEmpty &&
			!this.#polls.isOffered(region, partition)
		);
	}

	async #remove({ value }: Stored<ImportRecord>, hold: LeaseHold): Promise<void> {
		const { importUid, region, partition } = value;
		await this.#stop(importUid);
		await this.#unlessFull(value, "no room for the records of a removal", async () => {
			const stored = await this.#records.get("regional", importUid);
			if (stored !== undefined) {
				const store = ImportStore.of(this.#storage(hold), stored);
				await store.removeAll({});
				await store.forget();
				this.#options.logger.info({ region, partition }, "copies of another region removed");
			}
		});
	}

	/** What a full storage refuses is tried again later, and holds up nothing else. */
	async #unlessFull(
		{ importUid, region, partition }: Pick<ImportRecord, "importUid" | "region" | "partition">,
		what: string,
		work: () => Promise<void>,
	): Promise<void> {
		try {
			await work();
			this.#refused.delete(importUid);
		} catch (err) {
			if (!(err instanceof Exhausted)) {
				throw err;
			}
			if (!this.#refused.has(importUid)) {
				this.#refused.add(importUid);
				this.#options.logger.warn({ region, partition, err }, what);
			}
		}
	}

	async #start(
		region: string,
		partition: string,
		hold: LeaseHold,
		signal: AbortSignal,
		onFenced: (reason: unknown) => void,
	): Promise<void> {
		const { runtime, registry, logger, own, regions } = this.#options;
		const { recordMs, recordsMs } = peeringLimits;
		const uid = recordUid(region, partition);
		const deployment = this.#deployments.get(region)?.uid ?? "";
		if (this.#running.get(uid)?.deployment === deployment) {
			return;
		}
		await this.#stop(uid);
		const initial = create(ImportRecordSchema, { importUid: uid, region, partition });
		const store = await ImportStore.open(this.#storage(hold), initial);
		const live = new LiveImport(runtime.clock);
		const end = new AbortController();
		const run = new ImportRun({
			...{ store, live, registry, runtime, logger, check: this.#check },
			source: regionSource({
				...{ own, regions, region, partition, random: runtime.random },
				deployment: () => this.#deployments.get(region),
			}),
			fields: { region, partition },
			recordMs: () => Math.max(recordMs, recordsMs * this.#running.size),
			onState: () => {},
		});
		const both = AbortSignal.any([signal, end.signal]);
		const ended = run.run(both).catch((failure: unknown) => {
			if (!both.aborted) {
				onFenced(failure);
			}
		});
		this.#running.set(uid, { deployment, live, store, end, ended: ended.then(() => {}) });
	}

	async #stop(uid: string): Promise<void> {
		const running = this.#running.get(uid);
		if (running !== undefined) {
			this.#running.delete(uid);
			running.end.abort(new Error("the region has changed"));
			await running.ended;
		}
	}

	#storage({ fence }: LeaseHold) {
		const { backend, runtime, maxCopies } = this.#options;
		return { backend, runtime, maxCopies, records: this.#records, fence };
	}
}

/** Identifies the record of a partition of a region. */
function recordUid(region: string, partition: string): string {
	return createHash("sha256").update(`${region}/${partition}`).digest("hex").slice(0, 40);
}

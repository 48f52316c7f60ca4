import { create } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import {
	DeletedDeploymentSchema,
	DeploymentSchema,
} from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import type { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { idOf, resourceOf } from "@plinth/resource";
import { Backoff, type Logger, type Runtime } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";
import { type DeploymentInfo, takenOver } from "./environment.ts";
import { anyOf, unavailable } from "./meta-calls.ts";
import type { MetaSource } from "./meta-source.ts";
import type { MetaSources, RecoveringMeta } from "./meta-sources.ts";
import { DeletedDeployment, Deployment, deletedDeploymentName } from "./meta-types.ts";
import type { RegisteredDeployment, RegistryView } from "./registry-view.ts";

const oldestGeneration = "0".repeat(26);

/** What a deployment knows of the registry of a meta deployment. */
export interface RegistryReport {
	/** Its Deployments. */
	readonly deployments: readonly Resource[];
	/** The records of deletions. */
	readonly deleted: readonly Resource[];
	/** The uids of all known deployments that have no successor, of every meta deployment. */
	readonly knownUids: readonly string[];
}

/**
 * What the view has of a meta deployment, whichever of its servers has reported it.
 *
 * @param dropped - the uids of deleted deployments of which this one has dropped the sources.
 */
export function reportOf(
	view: RegistryView,
	servers: readonly Pick<MetaSource, "address">[],
	dropped: Iterable<string>,
): RegistryReport {
	const addresses = view.sourcesWith(servers.map(({ address }) => address));
	const known = [...view.deployments().values()];
	const superseded = new Set(known.flatMap(takenOver));
	const gone = new Set(dropped);
	const isGone = ({ id }: Resource) => gone.has(id?.uid ?? "");
	return {
		deployments: view.deploymentsAt(addresses).filter((each) => !isGone(each)),
		deleted: [
			...view.deletionsAt(addresses),
			...[...gone].filter((uid) => !view.isDeleted(uid)).map(deletionOf),
		],
		knownUids: known.map(({ uid }) => uid).filter((uid) => !superseded.has(uid) && !gone.has(uid)),
	};
}

/** A report that has this Deployment, if it lacks it. Any other content of it is newer. */
export function withDeployment(
	report: RegistryReport,
	registered: RegisteredDeployment,
): RegistryReport {
	const { uid, name, version, ...fields } = registered;
	if (report.deployments.some(({ id }) => id?.uid === uid)) {
		return report;
	}
	const data = create(DeploymentSchema, {
		...fields,
		otherPredecessorUids: [...(fields.otherPredecessorUids ?? [])],
		currentVersion: version,
	});
	const resource = resourceOf(Deployment, { id: { ...idOf(Deployment, name), uid }, data });
	resource.generation = oldestGeneration;
	return { ...report, deployments: [...report.deployments, resource] };
}

/** The record of a deletion of which only the uid is known. */
function deletionOf(uid: string): Resource {
	return resourceOf(DeletedDeployment, {
		id: idOf(DeletedDeployment, deletedDeploymentName(uid)),
		data: create(DeletedDeploymentSchema, { uid }),
	});
}

/** Gives a meta deployment back what is known of its registry, at any of its servers. @throws ConnectError. Retry. */
export async function giveBack(
	servers: readonly MetaSource[],
	meta: Pick<RegisteredDeployment, "uid">,
	from: Pick<DeploymentInfo, "uid" | "service" | "region" | "version">,
	{ deployments, deleted, knownUids }: RegistryReport,
	timeoutMs: number,
): Promise<void> {
	const { uid, service, region, version } = from;
	const request = {
		route: { from: { uid, service, region, version }, toUid: meta.uid },
		deployments: [...deployments],
		deleted: [...deleted],
		knownUids: [...knownUids],
	};
	await anyOf(servers, ({ mixin }) => mixinOf(mixin).reportRegistry(request, { timeoutMs }));
}

function mixinOf(mixin: Client<typeof SchemaMixinService> | undefined) {
	if (mixin === undefined) {
		throw unavailable("a meta deployment reports nothing to itself");
	}
	return mixin;
}

/** Options of `RegistryReports`. */
export interface RegistryReportsOptions {
	readonly sources: Pick<MetaSources, "recovering">;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** Reports to a meta deployment. Called again if it rejects, while that is recovering. */
	readonly report: (recovering: RecoveringMeta) => Promise<void>;
	/**
	 * Registers with a meta deployment that has the report, and once more when that is complete. Called again if it rejects:
	 * it may be complete by then.
	 */
	readonly registerAgain: (servers: readonly MetaSource[]) => Promise<void>;
}

const again = { baseMs: 250, maxMs: 5_000 } as const;

/**
 * Reports to each meta deployment that was restored, once for each of its incarnations, and registers with it again.
 *
 * A report of another deployment may come later, and replace what this one has announced since by what was known before:
 * clocks decide which is newer. None can once the meta deployment is complete: then this one registers once more.
 */
export class RegistryReports {
	readonly #options: RegistryReportsOptions;
	/** The uids of the meta deployments to which reports are made or in progress. */
	readonly #reported = new Set<string>();
	/** The meta deployments that are not complete, by uid, with their servers as they were known last. */
	readonly #recovering = new Map<string, RecoveringMeta>();

	constructor(options: RegistryReportsOptions) {
		this.#options = options;
	}

	/** Begins reports to meta deployments that were restored since, and registers with those that are complete since. */
	begin(signal: AbortSignal): void {
		const recovering = this.#options.sources.recovering();
		for (const [uid, complete] of this.#recovering) {
			if (!recovering.some(({ meta }) => meta.uid === uid)) {
				this.#recovering.delete(uid);
				if (!isPlanted("register once with a restored registry")) {
					void this.#registerOnceMore(complete, signal);
				}
			}
		}
		for (const each of recovering) {
			const { uid } = each.meta;
			this.#recovering.set(uid, each);
			if (!this.#reported.has(uid)) {
				this.#reported.add(uid);
				void this.#report(uid, signal);
			}
		}
	}

	/** Retries until it succeeds, the meta deployment is complete without it, or the signal aborts. Never rejects. */
	async #report(uid: string, signal: AbortSignal): Promise<void> {
		const { sources, runtime, logger, report, registerAgain } = this.#options;
		const backoff = new Backoff({ ...again, clock: runtime.clock, random: runtime.random });
		let reportedTo: RecoveringMeta | undefined;
		while (!signal.aborted) {
			const to = reportedTo ?? sources.recovering().find(({ meta }) => meta.uid === uid);
			if (to === undefined) {
				this.#reported.delete(uid);
				return;
			}
			try {
				if (reportedTo === undefined) {
					await report(to);
					reportedTo = to;
				}
				await registerAgain(to.servers);
				const { name } = to.meta;
				logger.info({ meta: name, uid }, "reported to a meta deployment that was restored");
				return;
			} catch (failure) {
				logger.debug({ err: failure, uid }, "could not report to a meta deployment");
			}
			await backoff.wait(signal).catch(() => {});
		}
	}

	/** Retries until it succeeds, or the signal aborts. Never rejects. */
	async #registerOnceMore({ meta, servers }: RecoveringMeta, signal: AbortSignal): Promise<void> {
		const { runtime, logger, registerAgain } = this.#options;
		const backoff = new Backoff({ ...again, clock: runtime.clock, random: runtime.random });
		while (!signal.aborted) {
			try {
				await registerAgain(servers);
				return;
			} catch (failure) {
				logger.debug({ err: failure, uid: meta.uid }, "could not register with it once more");
			}
			await backoff.wait(signal).catch(() => {});
		}
	}
}

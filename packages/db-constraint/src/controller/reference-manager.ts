import type { ControllerReports, Share } from "@plinth/controller";
import { isPlanted } from "../fault-points.ts";
import type { DeploymentInfo } from "../registry/environment.ts";
import { recordId } from "../shadow/shadow-records.ts";
import { responsibleUid } from "../succession/successors.ts";
import { followDeletions } from "./follow-deletions.ts";
import { SuccessorReports } from "./successor-reports.ts";
import { TargetLocations } from "./target-locations.ts";
import {
	startVersionControllers,
	type VersionControllers,
	type VersionControllersOptions,
} from "./version-controllers.ts";

/** Options of a reference manager. */
export type ReferenceManagerOptions = Omit<VersionControllersOptions, "whileRunning">;

/**
 * Maintains the set of related deployments, and everything that depends on it:
 *
 *     registry changes ────┐                ┌─▶ a subscription for each other deployment in it, on one server
 *     references change ───┼─▶ the set ─────┤
 *     version switches ────┘                └─▶ the controllers of the current version
 *
 * Related are all deployments of this service and of those that its current version imports, in
 * every region, unless they are disabled; and all those that outgoing references name.
 */
export class ReferenceManager {
	readonly #options: ReferenceManagerOptions;
	readonly #locations: TargetLocations;
	/** By uid. Referenced deployments stay in it with their last known state. */
	#relatedDeployments: ReadonlyMap<string, DeploymentInfo> = new Map();
	readonly #subscriptions = new Map<string, AbortController>();
	/** Subscriptions that have not ended, including stopped ones. */
	readonly #following = new Set<Promise<void>>();
	#controllers: VersionControllers | undefined;
	/** What the controller of this server works on, while it accepts deletions. */
	#share: Share | undefined;
	#wake = Promise.withResolvers<void>();

	constructor(options: ReferenceManagerOptions) {
		this.#options = options;
		this.#locations = new TargetLocations(options.constraints.context, () => this.#wake.resolve());
	}

	/** The related deployments, including this one. */
	get relatedDeployments(): readonly DeploymentInfo[] {
		return [...this.#relatedDeployments.values()];
	}

	/** The uids of the deployments whose deletions are watched now. */
	get subscribed(): readonly string[] {
		return [...this.#subscriptions.keys()];
	}

	/** The version of the running inner manager; `undefined` if none is running. */
	get version(): string | undefined {
		return this.#controllers?.version;
	}

	/** On the controllers of the version that runs; `undefined` if none is running. */
	get reports(): ControllerReports | undefined {
		return this.#controllers?.reports;
	}

	/** Runs until the signal aborts, and resolves when all work has ended. */
	async run(signal: AbortSignal): Promise<void> {
		const { context } = this.#options.constraints;
		const wake = () => this.#wake.resolve();
		const reports = new SuccessorReports(context);
		await context.index.ready(signal).catch(() => {});
		const stops = [context.environment.onChange(wake), this.#locations.follow()];
		signal.addEventListener("abort", wake, { once: true });
		while (!signal.aborted) {
			this.#wake = Promise.withResolvers();
			this.#relatedDeployments = this.#findRelated();
			await this.#switchVersion();
			this.#subscribe();
			reports.begin(signal);
			await this.#wake.promise;
		}
		for (const stop of stops) {
			stop();
		}
		await this.#controllers?.stop();
		this.#controllers = undefined;
		for (const stop of this.#subscriptions.values()) {
			stop.abort();
		}
		this.#subscriptions.clear();
		await Promise.all([...this.#following, reports.ended()]);
	}

	#findRelated(): ReadonlyMap<string, DeploymentInfo> {
		const { environment, descriptor } = this.#options.constraints.context;
		const { self } = environment;
		const services = new Set([self.service]);
		for (const { service } of descriptor.imports()) {
			services.add(service);
		}
		const found = new Map<string, DeploymentInfo>();
		for (const deployment of [...this.#relatedDeployments.values(), ...environment.deployments()]) {
			const now = environment.byUid(deployment.uid);
			const { uid, service, region } = now ?? deployment;
			const isOfInterest = services.has(service) && now !== undefined && !now.disabled;
			const isCurrent = responsibleUid(environment, uid) === uid;
			if (isCurrent && (isOfInterest || this.#locations.has(service, region))) {
				found.set(uid, now ?? deployment);
			}
		}
		return found;
	}

	async #switchVersion(): Promise<void> {
		const { version } = this.#options.constraints.context.environment.self;
		if (this.#controllers?.version === version) {
			return;
		}
		const { logger } = this.#options.constraints.context;
		const before = this.#controllers?.version;
		logger.info(
			{ ...(before && { before }), ...(version && { version }) },
			"starting the reference controllers",
		);
		await this.#controllers?.stop();
		if (isPlanted("control shadows only until the version is switched") && this.#controllers) {
			return;
		}
		this.#controllers = startVersionControllers(version, {
			...this.#options,
			whileRunning: (share) => {
				this.#share = share;
				this.#wake.resolve();
				const unfollow = share.onChange(() => {
					if (!isPlanted("follow no deployment whose shard was gained")) {
						this.#wake.resolve();
					}
				});
				return () => {
					unfollow();
					this.#share = undefined;
					this.#wake.resolve();
				};
			},
		});
	}

	/**
	 * Watches the deletions of the related deployments, each on one server of this deployment: the one that holds the shard
	 * of its uid, while its controller accepts them. The other servers are told of what it receives.
	 */
	#subscribe(): void {
		const { context } = this.#options.constraints;
		const self = context.environment.self.uid;
		const isOwn = (uid: string) =>
			uid !== self &&
			this.#relatedDeployments.has(uid) &&
			this.#share?.holdOf(recordId(uid)) !== undefined;
		for (const [uid, stop] of this.#subscriptions) {
			if (!isOwn(uid)) {
				stop.abort();
				this.#subscriptions.delete(uid);
			}
		}
		for (const uid of this.#relatedDeployments.keys()) {
			if (isOwn(uid) && !this.#subscriptions.has(uid)) {
				const stop = new AbortController();
				const ended = followDeletions(
					context,
					uid,
					(deletion) => context.hints.deleting(deletion),
					stop.signal,
				).finally(() => this.#following.delete(ended));
				this.#following.add(ended);
				this.#subscriptions.set(uid, stop);
			}
		}
	}
}

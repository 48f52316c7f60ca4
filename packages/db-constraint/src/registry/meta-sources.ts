import { type Logger, type Runtime, sleep } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";
import { followedTypes, followMeta, type MetaSource } from "./meta-source.ts";
import type { FollowedType, RegisteredDeployment, RegistryView } from "./registry-view.ts";
import type { FollowedSources } from "./stored-view.ts";

/** Options of `MetaSources`. */
export interface MetaSourcesOptions {
	readonly view: RegistryView;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** Called after each change of the view, and when a source has been read, or can't be. */
	readonly onChange: () => void;
}

/** After this time without a meta deployment, operators are told. Most watches resume at once. */
const tellMs = 10_000;

/** A meta deployment that was restored, and is not complete. */
export interface RecoveringMeta {
	/** Its own Deployment, of the incarnation that is not complete. */
	readonly meta: RegisteredDeployment;
	readonly servers: readonly MetaSource[];
}

interface FollowedSource extends MetaSource {
	/** The types whose first snapshot is complete. */
	readonly complete: Set<FollowedType>;
	/** The types with a complete snapshot that began after `readAgain`. */
	readonly completeAgain: Set<FollowedType>;
	/** Ends following it, which then begins again with a new snapshot. */
	again: AbortController;
	/** Since when each type can't be followed, in milliseconds of the wall clock. */
	readonly brokenSinceMs: Map<FollowedType, number>;
	/** Whether it was unreachable, or a watch broke, at least once. */
	hasBroken: boolean;
	/** Whether operators were told that it can't be followed. */
	isTold: boolean;
}

/** The sources by meta deployment, as of a revision of the view. */
interface GroupedSources {
	readonly revision: number;
	readonly groups: readonly (readonly FollowedSource[])[];
	/** Those of the groups that were restored and are not complete. */
	readonly recovering: readonly RecoveringMeta[];
}

/**
 * The meta deployments whose contents are followed, at one or more of their servers each. One server of a meta
 * deployment is enough: all of them have the same storage.
 */
export class MetaSources {
	readonly #options: MetaSourcesOptions;
	readonly #sources = new Map<string, FollowedSource>();
	/** Made again after a change of the view or of the sources. */
	#grouped: GroupedSources | undefined;
	/** Starts to follow a source. Set while they are followed. */
	#follow: ((source: FollowedSource) => void) | undefined;
	/** Whether `readAgain` was called. */
	#isReadAgain = false;

	constructor(options: MetaSourcesOptions) {
		this.#options = options;
	}

	/** The servers of each meta deployment. */
	get groups(): readonly (readonly MetaSource[])[] {
		return this.#groups;
	}

	get #groups(): readonly (readonly FollowedSource[])[] {
		return this.#current.groups;
	}

	get #current(): GroupedSources {
		const { view } = this.#options;
		const { revision } = view;
		if (this.#grouped?.revision !== revision) {
			const byMeta = Map.groupBy(this.#sources.values(), ({ address }) => view.metaOf(address));
			const groups = [...byMeta.values()];
			const recovering = groups.flatMap((servers) => {
				const meta = view.recovering(servers.map(({ address }) => address));
				return meta === undefined ? [] : [{ meta, servers }];
			});
			this.#grouped = { revision, groups, recovering };
		}
		return this.#grouped;
	}

	/**
	 * Whether all meta deployments have been read since the start, and since `readAgain` if that was called, and none of
	 * them was restored and lacks what has happened since the backup.
	 */
	get isComplete(): boolean {
		return this.isCompleteBut(undefined) && this.recovering().length === 0;
	}

	/**
	 * Whether all but one have been read: whether they are recovering does not matter. Before any is known, nothing was read.
	 * One that has no Deployments counts like the others: see the limits in `docs/design/references.md`.
	 */
	isCompleteBut(address: string | undefined): boolean {
		const isReadAgain = (each: FollowedSource) =>
			!this.#isReadAgain || each.completeAgain.size === followedTypes.length;
		const groups = this.#groups;
		return (
			groups.length > 0 &&
			groups.every(
				(group) =>
					group.some((each) => each.address === address) ||
					group.some((each) => isRead(each) && isReadAgain(each)),
			)
		);
	}

	/** The meta deployments that were restored and are not complete. */
	recovering(): readonly RecoveringMeta[] {
		return this.#current.recovering;
	}

	/**
	 * Begins new snapshots, which have all that exists now. It is not complete before it has those of all meta deployments.
	 * What was read before stays until then.
	 */
	readAgain(): void {
		this.#isReadAgain = true;
		for (const source of this.#sources.values()) {
			source.completeAgain.clear();
			source.again.abort(new Error("it is read again"));
		}
	}

	get(address: string): MetaSource | undefined {
		return this.#sources.get(address);
	}

	/** The servers of the meta deployment with a server at this address, that one first. */
	serversWith(address: string): readonly MetaSource[] {
		const group = this.#groupOf(address);
		const isGiven = (each: MetaSource) => each.address === address;
		return [...group.filter(isGiven), ...group.filter((each) => !isGiven(each))];
	}

	#groupOf(address: string): readonly FollowedSource[] {
		return this.#groups.find((group) => group.some((each) => each.address === address)) ?? [];
	}

	/** Adds a meta deployment, if it is not known yet. */
	add(meta: MetaSource): void {
		if (!this.#sources.has(meta.address)) {
			const source = {
				...meta,
				complete: new Set<FollowedType>(),
				completeAgain: new Set<FollowedType>(),
				again: new AbortController(),
				brokenSinceMs: new Map<FollowedType, number>(),
				hasBroken: false,
				isTold: false,
			};
			this.#sources.set(meta.address, source);
			this.#grouped = undefined;
			this.#follow?.(source);
		}
	}

	/** Forgets a meta deployment at an address where it was never read. */
	remove(address: string): void {
		const source = this.#sources.get(address);
		if (
			source !== undefined &&
			source.complete.size === 0 &&
			!isPlanted("follow a meta deployment at an address that was corrected")
		) {
			this.#sources.delete(address);
			this.#grouped = undefined;
			source.again.abort(new Error("no meta deployment has this address any longer"));
		}
	}

	#has(source: FollowedSource): boolean {
		return this.#sources.get(source.address) === source;
	}

	/** Whether the meta deployment with a server at this address has been read since the start. */
	isRead(address: string): boolean {
		return this.#groupOf(address).some(isRead);
	}

	/** Whether each of them has been read or can't be reached, and the one with this server has been read. */
	areTried(address: string): boolean {
		return this.#groups.every((group) => {
			const isTried = group.every(({ hasBroken }) => hasBroken);
			const isNeeded = group.some((each) => each.address === address);
			return group.some(isRead) || (isTried && !isNeeded);
		});
	}

	/**
	 * When the view had the contents of all of them last, in milliseconds of the wall clock: now, or when the first of them
	 * could no longer be followed. `undefined` if they have not been read since the start.
	 */
	upToDateMs(): number | undefined {
		if (!this.isComplete) {
			return undefined;
		}
		const now = this.#options.runtime.clock.now();
		const followedUntilMs = (source: FollowedSource) =>
			isRead(source) ? Math.min(now, ...source.brokenSinceMs.values()) : 0;
		return Math.min(now, ...this.#groups.map((group) => Math.max(...group.map(followedUntilMs))));
	}

	/** The servers of meta deployments that are followed now. */
	followed(): FollowedSources {
		const isSome = (group: readonly FollowedSource[]) => group.some(isFollowed);
		return {
			addresses: new Set(
				[...this.#sources.values()].filter(isFollowed).map(({ address }) => address),
			),
			areAll: this.#groups.every(isSome),
		};
	}

	/** Of each meta deployment that is followed at some server, what other servers have reported before is left out. */
	#supersede(): void {
		const { view } = this.#options;
		// What others have reported before a restore may be all that is known of deployments since the backup.
		const { groups, recovering } = this.#current;
		const isComplete = (group: readonly FollowedSource[]) =>
			!recovering.some(({ servers }) => servers === group);
		const superseded = groups.flatMap((group) =>
			group.some(isFollowed) && isComplete(group) ? group.filter((each) => !isFollowed(each)) : [],
		);
		view.supersede(new Set(superseded.map(({ address }) => address)));
	}

	/** Follows all of them until the signal aborts. Rejects at once if a listener fails. */
	async run(signal: AbortSignal): Promise<void> {
		const following = new Set<Promise<void>>();
		const failed = Promise.withResolvers<never>();
		this.#follow = (source) => {
			const follow = this.#run(source, signal).finally(() => following.delete(follow));
			following.add(follow);
			follow.catch(failed.reject);
		};
		for (const source of this.#sources.values()) {
			this.#follow(source);
		}
		while (following.size > 0) {
			await Promise.race([Promise.all(following), failed.promise]);
		}
		this.#follow = undefined;
	}

	async #run(source: FollowedSource, signal: AbortSignal): Promise<void> {
		while (!signal.aborted && this.#has(source)) {
			source.again = new AbortController();
			await this.#followOnce(source, signal, source.again.signal);
		}
	}

	/** Follows until either signal aborts. */
	#followOnce(source: FollowedSource, end: AbortSignal, again: AbortSignal): Promise<void> {
		const { view, runtime, logger, onChange } = this.#options;
		const { complete, completeAgain, brokenSinceMs } = source;
		const signal = AbortSignal.any([end, again]);
		return followMeta(
			{
				...{ source, view, runtime, logger, onChange },
				onStep: (step, type) => {
					if (step === "complete") {
						complete.add(type);
						if (!again.aborted) {
							completeAgain.add(type);
						}
						brokenSinceMs.delete(type);
						this.#tellRecovered(source);
					} else {
						source.hasBroken = true;
						if (!brokenSinceMs.has(type)) {
							brokenSinceMs.set(type, runtime.clock.now());
							void this.#tellBroken(source, end);
						}
					}
					this.#supersede();
					onChange();
				},
			},
			signal,
		);
	}

	async #tellBroken(source: FollowedSource, signal: AbortSignal): Promise<void> {
		const { runtime, logger } = this.#options;
		await sleep(runtime.clock, tellMs, signal).catch(() => {});
		const [since] = source.brokenSinceMs.values();
		if (since !== undefined && !source.isTold && !signal.aborted && this.#has(source)) {
			source.isTold = true;
			logger.warn(
				{ meta: source.address, since: new Date(since) },
				"a meta deployment can't be followed: the registry of deployments may be out of date",
			);
		}
	}

	#tellRecovered(source: FollowedSource): void {
		if (source.isTold && source.brokenSinceMs.size === 0) {
			source.isTold = false;
			this.#options.logger.info({ meta: source.address }, "the meta deployment is followed again");
		}
	}
}

function isRead({ complete }: FollowedSource): boolean {
	return complete.size === followedTypes.length;
}

function isFollowed(source: FollowedSource): boolean {
	return isRead(source) && source.brokenSinceMs.size === 0;
}

import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { ResourceService } from "@plinth/proto";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { Logger, Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { isPlanted } from "../fault-points.ts";
import { isServerAddress } from "../protocol/server-address.ts";
import type { DeploymentConfiguration } from "./deployment-configuration.ts";
import { unavailable } from "./meta-calls.ts";
import type { MetaSource } from "./meta-source.ts";
import { MetaSources, type RecoveringMeta } from "./meta-sources.ts";
import { metaService } from "./meta-types.ts";
import { isDeletedAt } from "./registration.ts";
import { type RegistryReport, reportOf } from "./registry-report.ts";
import { RegistryView } from "./registry-view.ts";
import type { RunningServers } from "./running-servers.ts";
import { StoredView } from "./stored-view.ts";

/** Options of a `FollowedRegistry`. */
export interface FollowedRegistryOptions {
	readonly deployment: DeploymentConfiguration;
	readonly backend: StorageBackend;
	/** Identifies the storage, which another one has that was restored from its backup. */
	readonly storageIncarnation?: string;
	/** The addresses of meta deployments, in the order of preference for the registration. */
	readonly metaAddresses: readonly string[];
	/** The resource service of this server, if this is a meta deployment. */
	readonly ownMeta: (() => Client<typeof ResourceService>) | undefined;
	/** Creates a transport to the internal listener of a deployment. Must not throw: see `connectAnywhere`. */
	readonly connect: (address: string) => Transport;
	/** The uids of the deleted deployments of which this one has dropped the sources. */
	readonly dropped: () => ReadonlySet<string>;
	/** The running servers of the other deployments, which are stored with the view. */
	readonly running: RunningServers;
	/** Called after each change of the view, and when a source has been read, or can't be. */
	readonly onChange: () => void;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** The timeout of a call to a meta deployment, in milliseconds. */
	readonly callTimeoutMs: number;
}

/**
 * The registry as this server knows it: the view, the meta deployments that it follows, and what is stored of the view.
 * It follows the meta deployments of its configuration, and those that are in the view itself.
 */
export class FollowedRegistry {
	readonly #options: FollowedRegistryOptions;
	readonly view = new RegistryView();
	readonly sources: MetaSources;
	readonly stored: StoredView;
	/** The malformed addresses that are followed because they are in the view. */
	readonly #malformed = new Set<string>();
	#loaded: Promise<void> | undefined;
	/** When the stored view was up to date, if it was loaded. */
	#storedAsOf: Date | undefined;

	constructor(options: FollowedRegistryOptions) {
		this.#options = options;
		const { backend, running, onChange, runtime, logger } = options;
		const shared = { view: this.view, runtime, logger };
		this.sources = new MetaSources({ ...shared, onChange });
		this.stored = new StoredView({
			...{ ...shared, backend, running },
			upToDateMs: () => this.sources.upToDateMs(),
			followed: () => this.sources.followed(),
		});
	}

	/** When the stored view was up to date, if it was loaded. */
	get storedAsOf(): Date | undefined {
		return this.#storedAsOf;
	}

	/** When the view was up to date last, if some meta deployment can't be followed now. */
	get outdatedSince(): Date | undefined {
		if (!this.sources.isComplete) {
			return this.#storedAsOf;
		}
		// Not by comparing with the time: that may go on in between.
		return this.sources.followed().areAll ? undefined : new Date(this.sources.upToDateMs() ?? 0);
	}

	/** Loads the stored view, once. A meta deployment is not followed before `follow`. Never rejects. */
	load(): Promise<void> {
		this.#loaded ??= this.#load();
		return this.#loaded;
	}

	async #load(): Promise<void> {
		const { metaAddresses, ownMeta, logger } = this.#options;
		try {
			this.#storedAsOf = await this.stored.load(metaAddresses);
		} catch (failure) {
			logger.warn({ err: failure }, "the stored registry view can't be read");
		}
		if (ownMeta === undefined) {
			this.#addConfigured();
		}
	}

	/** Follows the meta deployments until the signal aborts. */
	follow(signal: AbortSignal): Promise<void> {
		this.#addConfigured();
		return this.sources.run(signal);
	}

	#addConfigured(): void {
		const { ownMeta, metaAddresses, deployment } = this.#options;
		if (ownMeta !== undefined) {
			this.sources.add({ address: deployment.address, client: ownMeta() });
		}
		for (const address of metaAddresses) {
			this.#addAddress(address);
		}
	}

	/**
	 * Adds the meta deployments that are in the view. What one with a malformed address stores is as unknown as what one
	 * stores that can't be reached: so it is a source too, which can't be read, until the address has been corrected.
	 */
	addFound(): void {
		const { deployment, logger } = this.#options;
		const found = [...this.view.deployments().values()].filter(
			({ service, address, disabled }) =>
				service === metaService && !disabled && address !== deployment.address,
		);
		for (const { name, address } of found) {
			if (!isServerAddress(address) && this.sources.get(address) === undefined) {
				this.#malformed.add(address);
				logger.warn(
					{ deployment: name, address },
					"a meta deployment can't be followed: the address in its Deployment is not an http or https URL: correct it, or delete the Deployment",
				);
			}
			this.#addAddress(address);
		}
		const addresses = new Set(found.map(({ address }) => address));
		for (const address of this.#malformed.difference(addresses)) {
			this.#malformed.delete(address);
			this.sources.remove(address);
		}
	}

	#addAddress(address: string): void {
		const { deployment, connect } = this.#options;
		if (this.sources.get(address) === undefined && address !== deployment.address) {
			const transport = connect(address);
			const client = createClient(ResourceService, transport);
			const mixin = createClient(SchemaMixinService, transport);
			this.sources.add({ address, client, mixin });
		}
	}

	/** The meta deployments that were restored and are not complete, without this one. */
	othersRecovering(): readonly RecoveringMeta[] {
		const { ownMeta, deployment, storageIncarnation } = this.#options;
		// Before it has read its own contents, it does not know by addresses that other servers are of the same deployment.
		const isSameStorage = ({ meta }: RecoveringMeta) =>
			storageIncarnation !== undefined &&
			meta.storageIncarnation === storageIncarnation &&
			!isPlanted("count the report of a restored registry itself");
		const isOwn = (each: RecoveringMeta) =>
			ownMeta !== undefined &&
			(isSameStorage(each) || each.servers.some(({ address }) => address === deployment.address));
		return this.sources.recovering().filter((each) => !isOwn(each));
	}

	/**
	 * What this deployment knows of the registry of a meta deployment: it counts as having reported once any of its servers
	 * has, so the report has what others of them have stored too.
	 *
	 * @throws StorageError if the storage can't be read.
	 */
	async knownOf(servers: readonly MetaSource[]): Promise<RegistryReport> {
		const followed = this.sources.groups.flat().map(({ address }) => address);
		return reportOf(await this.stored.withStored(followed), servers, this.#options.dropped());
	}

	/** Whether a deployment was deleted. @throws ConnectError if that can't be determined now. */
	async isDeleted(uid: string): Promise<boolean> {
		if (this.#options.dropped().has(uid)) {
			return true;
		}
		const isDeleted = await this.hasDeletionRecord(uid);
		const restored = this.sources.recovering().map(({ meta }) => `${meta.name} (${meta.uid})`);
		if (restored.length > 0) {
			// It may have a successor that was forgotten, or the record of the deletion was.
			throw unavailable(
				`whether deployment ${uid} was deleted is not known: these meta deployments were restored and are not complete yet: ${restored.join(", ")}`,
			);
		}
		return isDeleted;
	}

	/** Whether any meta deployment has the record of a deletion. @throws ConnectError if too few of them respond. */
	hasDeletionRecord(uid: string): Promise<boolean> {
		const { callTimeoutMs } = this.#options;
		return isDeletedAt({ metas: this.sources.groups, callTimeoutMs }, uid);
	}
}

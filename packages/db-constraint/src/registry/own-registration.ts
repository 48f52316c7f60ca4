import { ConnectError } from "@connectrpc/connect";
import { Backoff, type Logger, type Runtime } from "@plinth/runtime";
import { takenOverBy } from "../protocol/dropped-deployments.ts";
import type { ServiceDescriptor } from "../schema/service-descriptor.ts";
import type { DeploymentConfiguration } from "./deployment-configuration.ts";
import { type DeploymentInfo, takenOver } from "./environment.ts";
import type { FollowedRegistry } from "./followed-registry.ts";
import { anyOf, unavailable } from "./meta-calls.ts";
import type { MetaSource } from "./meta-source.ts";
import type { RecoveringMeta } from "./meta-sources.ts";
import { giveUpUid, type IdentityOptions, mayStartAlone, readIdentity } from "./own-identity.ts";
import {
	DeploymentDeleted,
	DeploymentSucceeded,
	type Registration,
	refresh,
	register,
	type UpdateOptions,
	updateDeployment,
} from "./registration.ts";
import { giveBack, withDeployment } from "./registry-report.ts";
import type { RegisteredDeployment } from "./registry-view.ts";

/** Options of an `OwnRegistration`. */
export interface OwnRegistrationOptions {
	readonly deployment: DeploymentConfiguration;
	readonly descriptor: ServiceDescriptor;
	readonly identity: IdentityOptions;
	readonly registry: FollowedRegistry;
	/** Whether this is a meta deployment, which registers with itself. */
	readonly isMeta: boolean;
	/** Whether a server of this deployment runs at an address. */
	readonly isRunningAt: (address: string) => boolean;
	/** Whether the schema of this server is the active one now. If not, servers that have that one announce its version. */
	readonly isActive: () => Promise<boolean>;
	/** Called after each change of the registration, or of its state. */
	readonly onChange: () => void;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** The timeout of a call to a meta deployment, in milliseconds. */
	readonly callTimeoutMs: number;
}

/** Options of an announcement. */
export interface AnnouncementOptions {
	/**
	 * Whether a server with another schema may be announcing its version at the same time. Then the Deployment is written also
	 * if it has the version already, so that what is under way finds it changed. Default: no.
	 */
	readonly competes?: boolean;
}

/** The state of the registration of this deployment. */
export type RegistryState =
	/** It serves by the stored registry view if it has one: see `isReady`. */
	| { readonly kind: "registering"; readonly lastProblem: string }
	| { readonly kind: "registered" }
	/** It has given up its uid, which was deleted: it must not serve writes, and registers again with its next start. */
	| { readonly kind: "deleted"; readonly reason: string }
	/** Another storage has taken over: it must not serve writes, and does not start again while that is registered. */
	| { readonly kind: "succeeded"; readonly reason: string };

const registerAgain = { baseMs: 250, maxMs: 5_000 } as const;

/**
 * The registration of this deployment: how it came about, what was announced under it, and whether it has ended, because
 * the deployment was deleted or another storage has taken over from it.
 */
export class OwnRegistration {
	readonly #options: OwnRegistrationOptions;
	#registration: Registration | undefined;
	#state: RegistryState = { kind: "registering", lastProblem: "" };
	/** Whether this server has started with the stored view, and has not been registered since. */
	#isAlone = false;
	#announced: string | undefined;
	/** The version that was to be announced last: it may be registered, and the response not be there yet. */
	#toAnnounce: string | undefined;
	#established = false;

	constructor(options: OwnRegistrationOptions) {
		this.#options = options;
	}

	get state(): RegistryState {
		return this.#state;
	}

	/** The result of the registration; `undefined` before. */
	get result(): Registration | undefined {
		return this.#registration;
	}

	/** This deployment in the registry view; before it appears there, the result of the registration. */
	get own(): RegisteredDeployment | undefined {
		const registered = this.#registration?.registered;
		const { view } = this.#options.registry;
		return registered && (view.deployments().get(registered.uid) ?? registered);
	}

	/** This deployment, also before it is registered. */
	get self(): DeploymentInfo {
		const { deployment } = this.#options;
		const { own } = this;
		return {
			uid: own?.uid ?? "",
			name: own?.name ?? deployment.name ?? `${deployment.service}-${deployment.region}`,
			service: deployment.service,
			region: deployment.region,
			version: this.#announced ?? own?.version ?? deployment.version,
			disabled: own?.disabled ?? false,
			predecessorUid: own?.predecessorUid ?? "",
			otherPredecessorUids: own?.otherPredecessorUids ?? [],
			established: this.#established || (own?.established ?? true),
		};
	}

	/** Whether it is registered and the first registry view is complete, or it has started with the stored view. */
	get isReady(): boolean {
		const { sources } = this.#options.registry;
		const registrar = this.#registration?.registrar.address;
		return registrar !== undefined && (this.#isAlone || sources.areTried(registrar));
	}

	/** Whether it must not serve writes any longer. */
	get hasEnded(): boolean {
		return this.#state.kind === "deleted" || this.#state.kind === "succeeded";
	}

	/** Registers, with retries, until it is registered, its registration has ended, or the signal aborts. */
	async run(signal: AbortSignal): Promise<void> {
		const { deployment, descriptor, identity, registry, isMeta, isRunningAt } = this.#options;
		const { onChange, runtime, logger, callTimeoutMs } = this.#options;
		const { clock, random } = runtime;
		const backoff = new Backoff({ ...registerAgain, clock, random });
		while (!signal.aborted) {
			try {
				const { groups } = registry.sources;
				this.#registration = await register({
					...{ deployment, descriptor, identity, isRunningAt, logger, callTimeoutMs },
					metas: isMeta ? groups.slice(0, 1) : groups,
					servedUid: this.#isAlone ? this.self.uid : undefined,
					known: () => registry.view.deployments().values(),
					reportTo: (servers) => registry.knownOf(servers),
				});
				this.#isAlone = false;
				if (takenOver(this.self).length > 0) {
					// It is to wait for all deployments that may have references of before: those that exist now.
					registry.sources.readAgain();
				}
				if (!this.hasEnded) {
					this.#state = { kind: "registered" };
				}
				onChange();
				return;
			} catch (failure) {
				if (failure instanceof DeploymentDeleted) {
					this.becomeDeleted();
					return;
				}
				if (failure instanceof DeploymentSucceeded && this.#registration !== undefined) {
					this.becomeSucceeded(failure.uid, failure.successorUid);
					return;
				}
				const { rawMessage } = ConnectError.from(failure);
				if (this.#state.kind === "registering" && this.#state.lastProblem !== rawMessage) {
					logger.warn(
						{ problem: rawMessage },
						"the deployment is not registered yet: trying again",
					);
					this.#state = { kind: "registering", lastProblem: rawMessage };
				}
				if (!(failure instanceof DeploymentSucceeded)) {
					await this.#startAlone();
				}
				await backoff.wait(signal).catch(() => {});
			}
		}
	}

	/** Serves by the stored view, if this storage may do so without a meta deployment. Never rejects. */
	async #startAlone(): Promise<void> {
		const { registry, logger, onChange } = this.#options;
		const { view, sources, storedAsOf: asOf } = registry;
		if (asOf === undefined || this.#registration !== undefined) {
			return;
		}
		try {
			const identity = await readIdentity(this.#options.identity);
			const registered = identity && view.deployments().get(identity.uid);
			const registrar = registered && sources.get(view.sourceOf(registered.uid) ?? "");
			const mayStart = identity !== undefined && mayStartAlone(identity);
			if (!mayStart || registered === undefined || registrar === undefined) {
				return;
			}
			if (view.successorOf(registered.uid) !== undefined) {
				return;
			}
			this.#registration = { registered, registrar };
			this.#isAlone = true;
			logger.warn(
				{ asOf },
				`no meta deployment can be reached: starting with the registry as it was at ${asOf.toISOString()}`,
			);
			onChange();
		} catch (failure) {
			logger.debug({ err: failure }, "the identity of the deployment can't be read");
		}
	}

	/**
	 * Announces the version that this deployment serves from now on, and that it has established the references
	 * of its predecessor.
	 *
	 * Whether its schema is active is read after the Deployment, which is written by compare-and-swap: a server that has
	 * activated another one since announces that later, and is not undone.
	 *
	 * @throws ConnectError if its registrar does not accept it, or another schema is active. Retry.
	 */
	async announce(version: string, { competes = false }: AnnouncementOptions = {}): Promise<void> {
		if (this.#registration === undefined) {
			throw unavailable("the deployment is not registered yet");
		}
		this.#toAnnounce = version;
		const { predecessorUid } = this.#registration.registered;
		const fields = { currentVersion: version, established: predecessorUid !== "" };
		const isOwn = async () => {
			if (!(await this.#options.isActive())) {
				throw unavailable("another server has activated its schema, and announces its version");
			}
		};
		await this.#update(this.#registration, fields, { always: competes, before: isOwn });
		this.#announced = version;
		this.#established = true;
		this.#options.onChange();
	}

	/** Registers another address. @throws ConnectError if its registrar does not accept it. Retry. */
	async announceAddress(address: string): Promise<void> {
		if (this.#registration !== undefined) {
			await this.#update(this.#registration, { address });
		}
	}

	/** Updates the Deployment at any server of the registrar. */
	async #update(
		{ registrar, ...registration }: Registration,
		fields: Parameters<typeof updateDeployment>[1],
		options?: UpdateOptions,
	): Promise<void> {
		const { registry, callTimeoutMs } = this.#options;
		// It may have another name since its registrar was restored.
		const registered = this.own ?? registration.registered;
		await anyOf(registry.sources.serversWith(registrar.address), (server) =>
			updateDeployment({ registered, registrar: server }, fields, callTimeoutMs, options),
		);
	}

	/** Gives a restored meta deployment back what is known. */
	async giveBackTo({ meta, servers }: RecoveringMeta): Promise<void> {
		const { registry, callTimeoutMs } = this.#options;
		const { self, own } = this;
		const known = await registry.knownOf(servers);
		const report =
			own !== undefined && this.#isRegistrar(servers) ? withDeployment(known, own) : known;
		await giveBack(servers, meta, self, report, callTimeoutMs);
	}

	/**
	 * Registers again with a restored meta deployment that was given back what is known, if it is the registrar: what this
	 * deployment has announced may be newer than what others knew.
	 */
	async registerAgain(servers: readonly MetaSource[]): Promise<void> {
		const { deployment, descriptor, isRunningAt, callTimeoutMs } = this.#options;
		if (this.#registration === undefined || !this.#isRegistrar(servers)) {
			return;
		}
		const registered = this.own ?? this.#registration.registered;
		await anyOf(servers, (server) =>
			refresh(
				{ deployment, descriptor, isRunningAt, callTimeoutMs },
				{ registered, registrar: server },
			),
		);
		if (this.#toAnnounce !== undefined && (await this.#options.isActive())) {
			await this.announce(this.#toAnnounce);
		}
	}

	#isRegistrar(servers: readonly MetaSource[]): boolean {
		const registrar = this.#registration?.registrar.address;
		return servers.some(({ address }) => address === registrar);
	}

	/**
	 * Another server of this deployment has given up its uid. There is nothing more to give up: the storage may have the next
	 * uid by now.
	 */
	giveUp(): void {
		if (this.#registration !== undefined && !this.hasEnded) {
			this.#end(this.#deletion);
			this.#options.onChange();
		}
	}

	/** Another deployment says that a deployment was deleted, and that it has dropped its sources. */
	refused(uid: string, by: DeploymentInfo): void {
		if (uid === this.self.uid && uid !== "" && !this.hasEnded) {
			this.#options.logger.error({ uid, by: by.name }, "another deployment has dropped this one");
			this.becomeDeleted();
		}
	}

	/**
	 * Another storage has taken over from this deployment. Its uid is not given up: then it would register as a successor
	 * too when it starts again, and the two would take over from each other.
	 */
	becomeSucceeded(uid: string, successorUid: string): void {
		if (uid === this.self.uid && uid !== "" && !this.hasEnded) {
			const reason = takenOverBy(uid, successorUid);
			this.#state = { kind: "succeeded", reason };
			this.#options.logger.error({ uid, successor: successorUid }, reason);
			this.#options.onChange();
		}
	}

	get #deletion(): string {
		return `deployment ${this.self.name} was deleted`;
	}

	#end(reason: string): void {
		this.#state = { kind: "deleted", reason };
		this.#options.logger.error({ uid: this.self.uid }, reason);
	}

	/** Its uid is given up, so that it does not start with it again, not even with the stored view. */
	becomeDeleted(reason = this.#deletion): void {
		const { identity, logger, onChange } = this.#options;
		const { uid } = this.self;
		if (this.hasEnded) {
			return;
		}
		this.#end(reason);
		void giveUpUid(identity, uid).then(
			() => onChange(),
			(failure) => {
				logger.error({ err: failure, uid }, "could not give up the uid of this deployment");
				onChange();
			},
		);
	}
}

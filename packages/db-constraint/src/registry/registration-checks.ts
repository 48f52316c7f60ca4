import { Backoff, type Logger, type Runtime } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";
import { takenOver } from "./environment.ts";
import type { FollowedRegistry } from "./followed-registry.ts";
import type { MetaSource } from "./meta-source.ts";
import type { OwnRegistration } from "./own-registration.ts";
import {
	deploymentOf,
	metaOf,
	type RegisteredDeployment,
	type RegistryView,
} from "./registry-view.ts";

/** Options of `RegistrationChecks`. */
export interface RegistrationChecksOptions {
	readonly registration: OwnRegistration;
	readonly registry: FollowedRegistry;
	/** Whether this is a meta deployment, which registers with itself. */
	readonly isMeta: boolean;
	/** Aborts when the registry no longer runs. */
	readonly end: AbortSignal;
	readonly runtime: Runtime;
	readonly logger: Logger;
}

const readAgain = { baseMs: 250, maxMs: 5_000 } as const;

/** Whether the registry still has this deployment, and no other one in its place. To check after each change of it. */
export class RegistrationChecks {
	readonly #options: RegistrationChecksOptions;
	#isCheckingDeletion = false;

	constructor(options: RegistrationChecksOptions) {
		this.#options = options;
	}

	/** Ends the registration if the registry says so; reads at once, or later, what the registry view does not prove. */
	begin(): void {
		this.#checkSuccessor();
		this.#checkOtherRestore();
		void this.#checkDeletion();
	}

	#checkSuccessor(): void {
		const { registration, registry } = this.#options;
		const own = registration.result?.registered;
		const successor = own && registry.view.successorOf(own.uid);
		// Another server of the same storage has registered it again, because its Deployment was deleted.
		const isOfStorage = successor?.storageIncarnation === own?.storageIncarnation;
		if (own !== undefined && successor !== undefined && !isOfStorage) {
			registration.becomeSucceeded(own.uid, successor.uid);
		}
	}

	/**
	 * Two restores of a backup that register at the same time do not name each other, so that neither stops. The one that is
	 * responsible by its uid registers again: then it takes over from both, by the rules of every succession.
	 */
	#checkOtherRestore(): void {
		const { registration, registry } = this.#options;
		const { own, state } = registration;
		if (own === undefined || state.kind !== "registered") {
			return;
		}
		const other = otherRestore(own, registry.view);
		if (other !== undefined && !isPlanted("stay beside another restore of the backup")) {
			registration.becomeDeleted(
				`${other.name} (${other.uid}) was restored from the same backup and has registered at the same time: deployment ${own.name} registers again, to take over from it`,
			);
		}
	}

	/**
	 * Absence from the registry view proves nothing, but is a reason to read the permanent record. Retries until a meta
	 * deployment responds: the registry may not change again. Never rejects.
	 */
	async #checkDeletion(): Promise<void> {
		if (this.#isCheckingDeletion) {
			return;
		}
		this.#isCheckingDeletion = true;
		const { registration, registry, end, runtime, logger } = this.#options;
		const backoff = new Backoff({ ...readAgain, clock: runtime.clock });
		let givenBackTo: readonly MetaSource[] = [];
		while ((this.#isAbsent || givenBackTo.length > 0) && !end.aborted) {
			try {
				if (await registry.hasDeletionRecord(registration.self.uid)) {
					registration.becomeDeleted();
				} else {
					// It may have been lost once more since, in a restore after which nobody waited for this deployment.
					if (givenBackTo.length === 0 || (this.#isAbsent && !isPlanted("give a uid back once"))) {
						givenBackTo = await this.#giveBackOwn();
					}
					await registration.registerAgain(givenBackTo);
				}
				break;
			} catch (failure) {
				logger.debug({ err: failure }, "could not determine whether this deployment was deleted");
			}
			await backoff.wait(end).catch(() => {});
		}
		this.#isCheckingDeletion = false;
	}

	/**
	 * Gives itself back to a meta deployment that was restored, and was complete before this deployment had reported.
	 *
	 * @returns the servers of that one, with which it has to register again.
	 */
	async #giveBackOwn(): Promise<readonly MetaSource[]> {
		const { registration, registry, isMeta } = this.#options;
		const { view, sources } = registry;
		const registrar = registration.result?.registrar.address ?? "";
		const servers = sources.serversWith(registrar);
		const addresses = servers.map(({ address }) => address);
		const meta = metaOf(view.deploymentsAt(addresses).map(deploymentOf));
		if (meta !== undefined && !meta.recovering && !isMeta) {
			await registration.giveBackTo({ meta, servers });
			return servers;
		}
		return [];
	}

	/** Whether this deployment is missing from the registry view, though its registrar has been read. */
	get #isAbsent(): boolean {
		const { registration, registry } = this.#options;
		const { registered, registrar } = registration.result ?? {};
		return (
			registered !== undefined &&
			registrar !== undefined &&
			registration.state.kind === "registered" &&
			registry.sources.isRead(registrar.address) &&
			!registry.view.deployments().has(registered.uid)
		);
	}
}

/**
 * Another deployment of the place that has taken over from the same one, from which this one has not taken over, although
 * its uid is greater; of another storage, and without a successor.
 */
function otherRestore(
	own: RegisteredDeployment,
	view: RegistryView,
): RegisteredDeployment | undefined {
	const before = takenOver(own);
	return [...view.deployments().values()].find(
		(each) =>
			each.service === own.service &&
			each.region === own.region &&
			each.storageIncarnation !== own.storageIncarnation &&
			each.uid < own.uid &&
			!before.includes(each.uid) &&
			takenOver(each).some((uid) => before.includes(uid)) &&
			view.successorOf(each.uid) === undefined,
	);
}

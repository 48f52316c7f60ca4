import { Code, ConnectError } from "@connectrpc/connect";
import { idOf } from "@plinth/resource";
import { Backoff, type Logger, type Runtime } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";
import type { MetaSource } from "./meta-source.ts";
import type { MetaSources } from "./meta-sources.ts";
import { Deployment } from "./meta-types.ts";
import { type IdentityOptions, type OwnIdentity, readIdentity } from "./own-identity.ts";
import type { RegisteredDeployment, RegistryView } from "./registry-view.ts";

/** Where a deployment looks for its registrations, and who is told. */
interface DeleteOptions {
	readonly logger: Logger;
	/** The timeout of one call, in milliseconds. */
	readonly callTimeoutMs: number;
}

/**
 * Whether a storage has registered this, and no server has ever used it: two servers have registered the storage at the
 * same time, and one of the uids was recorded; or the message that registered it arrived late. Other deployments would look
 * for the deployment there. The identity must be read after the registration: a uid that is recorded later was not there
 * to be used then.
 */
export function isUnused(identity: OwnIdentity, registered: RegisteredDeployment): boolean {
	const { uid, predecessorUid, formerUids, storageIncarnation } = identity;
	return (
		uid !== "" &&
		registered.storageIncarnation === storageIncarnation &&
		![uid, predecessorUid, ...formerUids].includes(registered.uid)
	);
}

/** Deletes a registration that was never used, if it is still there. @throws ConnectError if that fails. Retry. */
export async function deleteUnused(
	{ client }: Pick<MetaSource, "client">,
	{ name, uid }: RegisteredDeployment,
	{ logger, callTimeoutMs }: DeleteOptions,
): Promise<void> {
	try {
		await client.delete({ id: { ...idOf(Deployment, name), uid } }, { timeoutMs: callTimeoutMs });
	} catch (failure) {
		if (ConnectError.from(failure).code !== Code.NotFound) {
			throw failure;
		}
	}
	logger.warn(
		{ deployment: name, uid },
		"this storage was registered twice: deleted the registration that it does not use",
	);
}

/** Options of `UnusedRegistrations`. */
export interface UnusedRegistrationsOptions extends DeleteOptions {
	readonly view: RegistryView;
	readonly sources: Pick<MetaSources, "serversWith">;
	readonly identity: IdentityOptions;
	readonly runtime: Runtime;
}

const again = { baseMs: 250, maxMs: 60_000 } as const;

/** Deletes registrations that appear while servers run, and that none of them uses. Each server tries. */
export class UnusedRegistrations {
	readonly #options: UnusedRegistrationsOptions;
	#isDeleting = false;
	/** Whether the registry view may have changed since the running deletion has looked at it. */
	#hasChanged = false;

	constructor(options: UnusedRegistrationsOptions) {
		this.#options = options;
	}

	/**
	 * Deletes those that the registry view has, until it has none or the signal aborts. If that is under way, it looks at the
	 * view once more. Never rejects.
	 */
	async delete(own: RegisteredDeployment, signal: AbortSignal): Promise<void> {
		if (isPlanted("leave a registration that arrived late")) {
			return;
		}
		this.#hasChanged = true;
		if (this.#isDeleting) {
			return;
		}
		this.#isDeleting = true;
		const { runtime, logger } = this.#options;
		const backoff = new Backoff({ ...again, clock: runtime.clock, random: runtime.random });
		while (this.#hasChanged) {
			this.#hasChanged = false;
			const others = this.#othersOf(own);
			if (signal.aborted || others.length === 0) {
				break;
			}
			try {
				if (!(await this.#deleteUnused(others))) {
					continue;
				}
			} catch (failure) {
				logger.debug({ err: failure }, "could not delete a registration that is not used");
			}
			await backoff.wait(signal).catch(() => {});
			this.#hasChanged = true;
		}
		this.#isDeleting = false;
	}

	/** The registrations of the same storage. */
	#othersOf(own: RegisteredDeployment): readonly RegisteredDeployment[] {
		return [...this.#options.view.deployments().values()].filter(
			({ uid, service, region, storageIncarnation }) =>
				uid !== own.uid &&
				service === own.service &&
				region === own.region &&
				storageIncarnation === own.storageIncarnation,
		);
	}

	/** Returns whether some of them were not used. */
	async #deleteUnused(others: readonly RegisteredDeployment[]): Promise<boolean> {
		const { view, sources, identity: options } = this.#options;
		const identity = await readIdentity(options);
		const unused = others.filter((each) => identity !== undefined && isUnused(identity, each));
		for (const each of unused) {
			const [server] = sources.serversWith(view.sourceOf(each.uid) ?? "");
			if (server !== undefined) {
				await deleteUnused(server, each, this.#options);
			}
		}
		return unused.length > 0;
	}
}

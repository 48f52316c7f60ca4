import { type Runtime, sleep } from "@plinth/runtime";
import { EtcdClient } from "../client/etcd-client.ts";
import type { EtcdOptions } from "../client/etcd-options.ts";
import type { Keys } from "../keys.ts";
import { beginIncarnation, type IdentityContext, type StoredIdentity } from "./store-identity.ts";

/** How long to wait before another attempt, in milliseconds. */
const retryAfterMs = 100;

/** The store whose history was lost, as known to a server. */
export interface LostStore {
	readonly identity: StoredIdentity;
	/** The newest version that this server knows to have been issued. */
	readonly newestVersion: number;
}

/**
 * Begins a new incarnation of a store that has lost history, so that servers that start on it issue no version
 * twice. Retries until this server or another one has succeeded, or the signal aborts. Never rejects.
 */
export async function replaceIncarnation(
	lost: LostStore,
	context: Omit<IdentityContext, "client"> & { readonly keys: Keys; readonly runtime: Runtime },
	options: EtcdOptions,
	signal: AbortSignal,
): Promise<void> {
	const { runtime, logger } = context;
	// A separate client: the existing one refuses responses older than those it has seen.
	const client = new EtcdClient(options);
	try {
		while (!signal.aborted) {
			try {
				const begun = await beginIncarnation({ ...context, client }, lost, signal);
				const { incarnation, versionOffset } = begun ?? {};
				logger.warn(
					begun === undefined ? {} : { incarnation, versionsAbove: versionOffset },
					begun === undefined
						? "another server has begun a new incarnation of the store"
						: "began a new incarnation of the store",
				);
				return;
			} catch (error) {
				const why = error instanceof Error ? error.message : String(error);
				logger.warn({ why }, "could not begin a new incarnation of the store");
				await sleep(runtime.clock, retryAfterMs, signal);
			}
		}
	} catch {
		// The signal has aborted.
	} finally {
		client.close();
	}
}

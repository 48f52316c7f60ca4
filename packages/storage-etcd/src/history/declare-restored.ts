import { silentLogger, systemRuntime } from "@plinth/runtime";
import { StorageUnavailable } from "@plinth/storage";
import { EtcdClient } from "../client/etcd-client.ts";
import { EtcdError } from "../client/etcd-error.ts";
import { defaultPrefix, type EtcdOptions } from "../client/etcd-options.ts";
import { Keys } from "../keys.ts";
import { beginIncarnation, type EtcdStorageIdentity } from "./store-identity.ts";

/**
 * Declares that etcd was restored while no server ran: begins a new incarnation of the store, whose versions are
 * above all earlier ones. Running servers refuse all writes from then on and must be restarted.
 *
 * @throws StorageUnavailable if etcd can't be reached; UnrecognizedData if the prefix holds other data.
 */
export async function declareRestored(options: EtcdOptions): Promise<EtcdStorageIdentity> {
	const { runtime = systemRuntime, logger = silentLogger, prefix = defaultPrefix } = options;
	const client = new EtcdClient(options);
	try {
		const context = { client, keys: new Keys(prefix), runtime, logger };
		const begun = await beginIncarnation(context);
		if (begun === undefined) {
			throw new TypeError("an unconditional replacement always succeeds");
		}
		return begun;
	} catch (error) {
		throw error instanceof EtcdError
			? new StorageUnavailable(`can't declare the restore: ${error.message}`, { cause: error })
			: error;
	} finally {
		client.close();
	}
}

import { silentLogger, systemRuntime } from "@plinth/runtime";
import { Inconsistent } from "@plinth/storage";
import { EtcdClient } from "../client/etcd-client.ts";
import { EtcdError } from "../client/etcd-error.ts";
import { defaultPrefix, type EtcdOptions } from "../client/etcd-options.ts";
import { Keys } from "../keys.ts";
import { beginIncarnation, type StoreIdentity } from "./store-identity.ts";

/**
 * Declares that etcd was restored while no server ran: begins a new incarnation of the store, whose versions are
 * above all versions before. Servers that run refuse all writes from then on and must start again.
 *
 * @throws Inconsistent if etcd can't be reached; ForeignData if the prefix holds other data.
 */
export async function declareRestored(options: EtcdOptions): Promise<StoreIdentity> {
	const { runtime = systemRuntime, log = silentLogger, prefix = defaultPrefix } = options;
	const client = new EtcdClient(options);
	try {
		const context = { client, keys: new Keys(prefix), runtime, log };
		const begun = await beginIncarnation(context);
		if (begun === undefined) {
			throw new TypeError("only an incarnation that is known can be another one");
		}
		return begun;
	} catch (error) {
		throw error instanceof EtcdError
			? new Inconsistent(`can't declare the restore: ${error.message}`, { cause: error })
			: error;
	} finally {
		client.close();
	}
}

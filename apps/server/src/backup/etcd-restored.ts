import { silentLogger, systemRuntime } from "@plinth/runtime";
import { declareRestored } from "@plinth/storage-etcd";
import type { Configuration } from "../configuration/configuration.ts";
import { UsageError } from "../configuration/usage-error.ts";
import { etcdOptions } from "../storage/open-storage.ts";

/**
 * Declares that etcd was restored while no server was running. Returns a line that describes the result.
 *
 * @throws UsageError; StorageUnavailable if etcd can't be reached.
 */
export async function declareEtcdRestored({ etcd }: Pick<Configuration, "etcd">): Promise<string> {
	if (etcd === undefined) {
		throw new UsageError(
			"etcd-restored needs --storage etcd: plinth-server etcd-restored --storage etcd --etcd-endpoints <url>",
		);
	}
	const { incarnation, versionOffset } = await declareRestored(
		await etcdOptions(etcd, systemRuntime, silentLogger),
	);
	return `started incarnation ${incarnation} of the storage in etcd: all new versions are above ${versionOffset}\n`;
}

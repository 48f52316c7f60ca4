import { PeeringRecordType } from "@plinth/peering";
import type { TypeRegistry } from "@plinth/resource";
import type { Logger } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";

/** Warns about stored resources that can't be read: they are kept, and can be read once their type is registered. */
export async function warnOfUnregistered(
	backend: StorageBackend,
	registry: TypeRegistry,
	logger: Logger,
): Promise<void> {
	const known = new Set([...registry.all().map((type) => type.key), PeeringRecordType.key]);
	for (const [type, count] of await backend.countByType()) {
		if (!known.has(type)) {
			logger.warn({ type, count }, "stored resources of a type that no module registers are kept");
		}
	}
}

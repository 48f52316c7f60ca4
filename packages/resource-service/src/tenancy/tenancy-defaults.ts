import { create } from "@bufbuild/protobuf";
import { type ID, NamespaceSchema, PartitionSchema } from "@plinth/proto";
import {
	defaultTenancyUnit,
	idOf,
	Namespace,
	newUlid,
	Partition,
	resourceOf,
	sameName,
} from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import { CasFailure, type StorageBackend } from "@plinth/storage";
import { invalidArgument } from "../errors/refusal.ts";

const defaultPartition = Object.freeze(idOf(Partition, defaultTenancyUnit));
const defaultNamespace = Object.freeze(idOf(Namespace, defaultTenancyUnit));

/** Checks that a resource can be deleted: the partition `default` and its namespace `default` can't. */
export function checkDeletable(id: ID): void {
	if (sameName(id, defaultPartition)) {
		throw invalidArgument("the default partition can't be deleted");
	}
	if (sameName(id, defaultNamespace)) {
		throw invalidArgument("the default namespace can't be deleted");
	}
}

/** Creates the partition `default` and its namespace `default` unless they exist. */
export async function ensureDefaultTenancy(
	backend: StorageBackend,
	runtime: Runtime,
): Promise<void> {
	for (const init of [
		{ type: Partition, id: defaultPartition, data: create(PartitionSchema) },
		{ type: Namespace, id: defaultNamespace, data: create(NamespaceSchema) },
	]) {
		if ((await backend.lookup(init.id, { consistency: "strong" })) !== undefined) {
			continue;
		}
		const resource = resourceOf<typeof PartitionSchema | typeof NamespaceSchema>(init.type, {
			id: { ...init.id, uid: newUlid(runtime) },
			data: init.data,
		});
		resource.generation = newUlid(runtime);
		try {
			await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
		} catch (failure) {
			// Another server of the cluster has created it.
			if (!(failure instanceof CasFailure)) {
				throw failure;
			}
		}
	}
}

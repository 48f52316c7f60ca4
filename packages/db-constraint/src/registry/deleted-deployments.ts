import { create } from "@bufbuild/protobuf";
import type { ID, Resource } from "@plinth/proto";
import { DeletedDeploymentSchema } from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { decodeShared, idOf, newUlid, resourceOf } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import { decorateBackend, type Mutation, type StorageBackend } from "@plinth/storage";
import { DeletedDeployment, Deployment, deletedDeploymentName } from "./meta-types.ts";

/**
 * Decorates the storage of a meta deployment: each commit that removes a Deployment also writes the permanent
 * record of the deletion. Must be the innermost decorator, below those that may replace a deletion by a mark.
 */
export function recordDeletedDeployments(
	backend: StorageBackend,
	runtime: Runtime,
): StorageBackend {
	return decorateBackend(backend, {
		async commit(mutations, options) {
			const records = await Promise.all(
				mutations.map((mutation) => recordFor(backend, runtime, mutation)),
			);
			const { rebase, ...others } = options ?? {};
			// A commit that is decided again may remove a Deployment that its first decision does not.
			const kept = rebase !== undefined && !mutations.some(isOfDeployment) ? { rebase } : {};
			return backend.commit([...mutations, ...records.flatMap((each) => each ?? [])], {
				...others,
				...kept,
			});
		},
	});
}

/**
 * The record of the Deployment that the mutation removes, read in the version that the mutation expects: the
 * commit succeeds only for exactly that Deployment.
 */
async function recordFor(
	backend: StorageBackend,
	runtime: Runtime,
	mutation: Mutation,
): Promise<Mutation | undefined> {
	if (mutation.op !== "delete" || !isOfDeployment(mutation)) {
		return undefined;
	}
	const stored = await readVersion(backend, mutation.id, mutation.expectedVersion);
	const uid = stored?.id?.uid;
	if (stored === undefined || uid === undefined) {
		return undefined;
	}
	const name = idOf(DeletedDeployment, deletedDeploymentName(uid));
	if ((await backend.lookup(name, { consistency: "strong" })) !== undefined) {
		// A restore has brought a deleted Deployment back, and others have given back the record.
		return undefined;
	}
	const { service, region } = decodeShared(Deployment, stored).data;
	const resource = resourceOf(DeletedDeployment, {
		id: { ...name, uid: newUlid(runtime) },
		data: create(DeletedDeploymentSchema, { uid, service, region }),
	});
	resource.generation = newUlid(runtime);
	return { op: "put", resource, expectedVersion: "" };
}

function isOfDeployment(mutation: Mutation): boolean {
	const id = mutation.op === "put" ? mutation.resource.id : mutation.id;
	const { group, kind } = Deployment.type;
	return id?.type?.group === group && id.type.kind === kind;
}

/** This version of a resource, even if this server lags behind. A commit that expects another version fails. */
async function readVersion(
	backend: StorageBackend,
	id: ID,
	version: string,
): Promise<Resource | undefined> {
	const seen = await backend.lookup(id);
	const stored =
		seen?.version === version ? seen : await backend.lookup(id, { consistency: "strong" });
	return stored?.version === version ? stored : undefined;
}

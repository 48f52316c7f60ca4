import { create } from "@bufbuild/protobuf";
import type { ID, Resource } from "@plinth/proto";
import { DeletedDeploymentSchema } from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { decodeShared, idOf, newUlid, resourceOf } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import { decorateBackend, type Mutation, type StorageBackend } from "@plinth/storage";
import { lookup } from "../shadow-records.ts";
import { DeletedDeployment, Deployment, deletedDeploymentName } from "./meta-types.ts";

/**
 * The storage of a meta deployment: whichever commit removes a Deployment writes the permanent record
 * of that, too. It belongs below everything that may turn a deletion into something else.
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
			return backend.commit([...mutations, ...records.flatMap((each) => each ?? [])], options);
		},
	});
}

/**
 * The record of what the mutation removes. It is of the version that the mutation expects, so that the
 * commit that lands is of the very deployment that was read here.
 */
async function recordFor(
	backend: StorageBackend,
	runtime: Runtime,
	mutation: Mutation,
): Promise<Mutation | undefined> {
	const { group, kind } = Deployment.type;
	if (
		mutation.op !== "delete" ||
		mutation.id.type?.group !== group ||
		mutation.id.type.kind !== kind
	) {
		return undefined;
	}
	const stored = await readVersion(backend, mutation.id, mutation.expectedVersion);
	const uid = stored?.id?.uid;
	if (stored === undefined || uid === undefined) {
		return undefined;
	}
	const { service, region } = decodeShared(Deployment, stored).data;
	const resource = resourceOf(DeletedDeployment, {
		id: { ...idOf(DeletedDeployment, deletedDeploymentName(uid)), uid: newUlid(runtime) },
		data: create(DeletedDeploymentSchema, { uid, service, region }),
	});
	resource.generation = newUlid(runtime);
	return { op: "put", resource, expectedVersion: "" };
}

/** That version of a resource, also where this server hears of it late; a commit over another one fails. */
async function readVersion(
	backend: StorageBackend,
	id: ID,
	version: string,
): Promise<Resource | undefined> {
	const seen = await lookup(backend, id);
	const stored =
		seen?.version === version ? seen : await lookup(backend, id, { consistency: "strong" });
	return stored?.version === version ? stored : undefined;
}

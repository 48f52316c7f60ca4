import type { KnownType, KnownTypes, Place } from "@plinth/documents";
import type { WantedResource } from "@plinth/documents/yaml";
import type { ID, Resource } from "@plinth/proto";
import { familyKey, nameKey } from "@plinth/resource";
import { listResources } from "../api/read-resources.ts";
import type { ServerSession } from "../api/server-session.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { resourceName } from "../output/print-resources.ts";
import { printable } from "../output/printable.ts";
import { readStored, setKey } from "./apply-resource.ts";

/** What to prune. */
export interface Pruned {
	readonly set: string;
	readonly types: readonly KnownType[];
	/** The documents of the set: their resources stay. */
	readonly wanted: readonly WantedResource[];
}

/**
 * The resources of the set that no document has, of the types, where the documents and the session are: their
 * partitions and namespaces. In reverse order of the types. A list has only what is stored in its group version, so that
 * each version of a type is listed.
 */
export async function findPruned(
	session: ServerSession,
	{ set, types, wanted }: Pruned,
): Promise<readonly Resource[]> {
	const kept = new Set(wanted.map(({ id }) => nameKey(id)));
	const found = new Map<string, Resource>();
	const versions = versionsOf(types.toReversed(), await session.types());
	for (const place of placesOf(session, wanted)) {
		for (const type of versions) {
			const all = await listResources(session.at(place), type, {
				namePrefix: "",
				everywhere: false,
			});
			for (const resource of all) {
				const key = resource.id && nameKey(resource.id);
				if (key !== undefined && !kept.has(key) && resource.metadata[setKey] === set) {
					found.set(key, resource);
				}
			}
		}
	}
	return [...found.values()];
}

/** The types in all group versions that the server has, each once. */
function versionsOf(types: readonly KnownType[], { all }: KnownTypes): Iterable<KnownType> {
	return new Set(
		types.flatMap(({ type }) => {
			const family = familyKey(type);
			return all.filter((other) => familyKey(other.type) === family);
		}),
	);
}

function placesOf({ place }: ServerSession, wanted: readonly WantedResource[]): readonly Place[] {
	const places = new Map([[`${place.partition}/${place.namespace}`, place]]);
	for (const { id } of wanted) {
		const partition = id.tenancy?.partition || place.partition;
		const namespace = id.tenancy?.namespace || place.namespace;
		places.set(`${partition}/${namespace}`, { partition, namespace });
	}
	return [...places.values()];
}

/** Deletes resources that are in the set still. Each failure is printed, and the others go on. */
export async function prune(
	session: ServerSession,
	set: string,
	resources: readonly Resource[],
): Promise<ExitCode> {
	const { io } = session;
	let exitCode: ExitCode = exitCodes.ok;
	for (const { id } of resources) {
		try {
			io.out(await pruneOne(session, set, id));
		} catch (error) {
			if (!(error instanceof Failure) || io.signal.aborted) {
				throw error;
			}
			io.err(`plinth: ${resourceName({ id })}: ${printable(error.message)}\n`);
			exitCode ||= error.exitCode;
		}
	}
	return exitCode;
}

async function pruneOne(session: ServerSession, set: string, id: ID | undefined): Promise<string> {
	const { resources } = session.connection;
	const { signal } = session.io;
	if (id === undefined) {
		throw new Error("the server has listed a resource without an ID");
	}
	const stored = await session.call(readStored(resources, id, signal));
	const name = resourceName({ id });
	if (stored?.id?.uid !== id.uid) {
		return `${name} was deleted already\n`;
	}
	if (stored.metadata[setKey] !== set) {
		return `${name} was taken out of the set, and stays\n`;
	}
	// The version is the one whose mark was read: a resource that was taken out of the set meanwhile stays.
	await session.call(resources.delete({ id: stored.id, version: stored.version }, { signal }));
	const left = await session.call(readStored(resources, id, signal));
	return left?.id?.uid === id.uid
		? `${name} pruned: marked for deletion, and waits (plinth describe says for what)\n`
		: `${name} pruned\n`;
}

import { Code, ConnectError } from "@connectrpc/connect";
import { idAt, type KnownType, type Place, tenancyAt } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { displayName, idOf, Namespace, Partition, tenancyOf, typeOf } from "@plinth/resource";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { warn } from "../warn.ts";
import { assertOfRegion } from "./regions.ts";
import type { ServerSession } from "./server-session.ts";

const pageSize = 500;

/** Reads the resource with that name, or the copy of the region's. @throws Failure if it does not exist. */
export async function readResource(
	session: ServerSession,
	type: KnownType,
	name: string,
	region?: string,
): Promise<Resource> {
	const id = { ...idAt(type, name, session.place), ...(region !== undefined && { region }) };
	try {
		const { resource } = await session.connection.resources.read(
			{ id },
			{ signal: session.io.signal },
		);
		if (resource !== undefined) {
			await assertOfRegion(session, type, region, [resource]);
			return resource;
		}
	} catch (error) {
		if (!(error instanceof ConnectError && error.code === Code.NotFound)) {
			return session.call(Promise.reject(error));
		}
		if (error.rawMessage !== "resource not found") {
			throw new Failure(exitCodes.notFound, `${displayName(id)}: ${error.rawMessage}`);
		}
	}
	throw new Failure(exitCodes.notFound, `${displayName(id)} not found`);
}

/** Warns if nothing was found in the place because its namespace or its partition does not exist. */
export async function warnOfMissingTenancy(session: ServerSession, place: Place): Promise<void> {
	const missing = await missingTenancy(session, place);
	if (missing !== undefined) {
		warn(session.io, missing);
	}
}

/**
 * As in `namespace not found: <name>`, or the same for the partition; `undefined` if the place exists, or the caller may
 * not know.
 */
async function missingTenancy(
	session: ServerSession,
	{ partition, namespace }: Place,
): Promise<string | undefined> {
	const [kind, unit, name] =
		namespace === ""
			? (["partition", Partition, partition] as const)
			: (["namespace", Namespace, namespace] as const);
	if (name === "") {
		return undefined;
	}
	try {
		const id = idOf(unit, name, { partition });
		await session.connection.resources.read({ id }, { signal: session.io.signal });
		return undefined;
	} catch (error) {
		if (!(error instanceof ConnectError && error.code === Code.NotFound)) {
			return undefined;
		}
		return error.rawMessage === "resource not found"
			? `${kind} not found: ${name}`
			: error.rawMessage;
	}
}

/** The filters of a list. */
export interface ListOptions {
	readonly namePrefix: string;
	/** Whether to include all tenancies, and not only the session's. */
	readonly everywhere: boolean;
	/** Of copies, `*` for everything; by default what is no copy of another region. */
	readonly region?: string | undefined;
}

/** Yields all resources of the type from one snapshot. One page at a time is in memory. */
async function* eachResource(
	session: ServerSession,
	type: KnownType,
	{ namePrefix, everywhere, region }: ListOptions,
): AsyncGenerator<Resource> {
	let pageToken = "";
	do {
		const page = await session.call(
			session.connection.resources.list(
				{
					type: typeOf(type.type),
					tenancy: tenancyOf(tenancyAt(type, session.place, everywhere)),
					namePrefix,
					pageSize,
					pageToken,
					...(region !== undefined && { region }),
				},
				{ signal: session.io.signal },
			),
		);
		await assertOfRegion(session, type, region, page.resources);
		yield* page.resources;
		pageToken = page.nextPageToken;
	} while (pageToken !== "");
}

/** Like `eachResource`, as one list. */
export function listResources(
	session: ServerSession,
	type: KnownType,
	options: ListOptions,
): Promise<readonly Resource[]> {
	return Array.fromAsync(eachResource(session, type, options));
}

import { Code, ConnectError } from "@connectrpc/connect";
import { HistoryService, type ID } from "@plinth/proto";
import {
	Change,
	type ListVersionsResponse,
	type ResourceVersion,
} from "@plinth/proto/gen/plinth/history/v1/history_service_pb.js";
import { displayName } from "@plinth/resource";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { isOlderServer } from "./older-server.ts";
import type { ServerSession } from "./server-session.ts";

/** The most versions that a server returns at once. */
const pageSize = 1_000;

/** What a session is used for. */
interface CallingSession extends Pick<ServerSession, "call"> {
	readonly io: Pick<ServerSession["io"], "signal">;
	readonly connection: Pick<ServerSession["connection"], "client">;
}

/**
 * The recent versions of a resource, the newest first, up to the limit: in several calls if they are large or many.
 *
 * @param before - only versions that are older than this one; empty for all.
 * @returns the last response, with the versions of all.
 * @throws Failure, also for a server that has none.
 */
export async function listVersions(
	session: CallingSession,
	id: ID,
	limit: number,
	before = "",
): Promise<ListVersionsResponse> {
	const { io, connection } = session;
	const client = connection.client(HistoryService);
	const versions: ResourceVersion[] = [];
	let last: ListVersionsResponse | undefined;
	for (;;) {
		const next = {
			limit: Math.min(limit - versions.length, pageSize),
			beforeVersion: versions.at(-1)?.version ?? before,
		};
		const response = await session.call(
			client.listVersions({ id, ...next }, { signal: io.signal }).catch((error: unknown) => {
				if (last !== undefined && isForgotten(error)) {
					return { ...last, versions: [], hasMore: false };
				}
				return explain(error, id, before);
			}),
		);
		versions.push(...response.versions);
		if (!response.hasMore || versions.length >= limit) {
			return { ...response, versions, includesCreation: isCreated(versions.at(-1)) };
		}
		last = response;
	}
}

/** Whether the server, or another one that responds now, does not know the version after which a page begins. */
function isForgotten(error: unknown): boolean {
	return error instanceof ConnectError && [Code.OutOfRange, Code.NotFound].includes(error.code);
}

function isCreated(version: ResourceVersion | undefined): boolean {
	return version?.change === Change.CREATED;
}

function explain(error: unknown, id: ID, before: string): never {
	if (isOlderServer(error)) {
		throw new Failure(
			exitCodes.failed,
			"the server has no histories: it is older than this command, which needs its HistoryService",
		);
	}
	if (error instanceof ConnectError && error.code === Code.OutOfRange) {
		throw new Failure(
			exitCodes.failed,
			`version ${before} is not known any more: leave out --before`,
		);
	}
	if (error instanceof ConnectError && error.code === Code.NotFound) {
		const why =
			error.rawMessage === "resource not found"
				? "not found, and the server knows no earlier version of it"
				: `not found: ${error.rawMessage}`;
		throw new Failure(exitCodes.notFound, `${displayName(id)} ${why}`);
	}
	throw error;
}

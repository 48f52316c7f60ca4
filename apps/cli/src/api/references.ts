import type { ID } from "@plinth/proto";
import {
	type ListReferencesResponse,
	type PlanDeletionResponse,
	ReferenceService,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { isOlderServer } from "./older-server.ts";
import type { ServerSession } from "./server-session.ts";

/** The references of a resource in both directions. @throws Failure, also for a server that can't tell. */
export function listReferences(session: ServerSession, id: ID): Promise<ListReferencesResponse> {
	const { io, connection } = session;
	return session.call(
		unlessOlder(connection.client(ReferenceService).listReferences({ id }, { signal: io.signal })),
	);
}

/**
 * What the deletion of a resource would do, or waits for. @throws Failure, also for a server that can't tell.
 */
export function planDeletion(session: ServerSession, id: ID): Promise<PlanDeletionResponse> {
	const { io, connection } = session;
	return session.call(
		unlessOlder(connection.client(ReferenceService).planDeletion({ id }, { signal: io.signal })),
	);
}

async function unlessOlder<T>(response: Promise<T>): Promise<T> {
	try {
		return await response;
	} catch (error) {
		if (isOlderServer(error)) {
			throw new Failure(
				exitCodes.failed,
				"the server can't tell about references: it is older than this command, which needs its ReferenceService",
			);
		}
		throw error;
	}
}

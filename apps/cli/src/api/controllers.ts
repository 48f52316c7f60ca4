import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { nearest } from "@plinth/documents/suggest";
import type { ID } from "@plinth/proto";
import {
	ControllerService,
	type GetControllerResponse,
	type ListReconcilesResponse,
	ListReconcilesResponseSchema,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { printable } from "../output/printable.ts";
import { isOlderServer } from "./older-server.ts";
import type { ServerSession } from "./server-session.ts";

/** A controller with the keys that it works on. @throws Failure, also for a server that can't tell. */
export function getController(
	session: ServerSession,
	name: string,
): Promise<GetControllerResponse> {
	const { io, connection } = session;
	const response = connection
		.client(ControllerService)
		.getController({ name }, { signal: io.signal })
		.catch(async (error: unknown) => {
			if (isOlderServer(error)) {
				throw new Failure(
					exitCodes.failed,
					"the server can't describe one controller: it is older than this command; `plinth controllers` lists all",
				);
			}
			if (isNotFound(error)) {
				// Of the servers that have not responded, one may have it: the message names them.
				const message = printable(error.rawMessage);
				const near = await similarController(session, name);
				const hint = near === undefined ? "" : `; did you mean ${near}?`;
				throw new Failure(
					exitCodes.notFound,
					`${message}${hint || ":"} \`plinth controllers\` lists all`,
				);
			}
			throw error;
		});
	return session.call(response);
}

/** The controller with the most similar name. None if the server does not list them. */
async function similarController(
	{ io, connection }: ServerSession,
	name: string,
): Promise<string | undefined> {
	const client = connection.client(ControllerService);
	const { controllers } = await client
		.listControllers({}, { signal: io.signal })
		.catch(() => ({ controllers: [] }));
	return nearest(
		name,
		controllers.map((each) => each.name),
	);
}

/** What each controller does with a resource; nothing if the server is older, or the resource is gone. */
export function listReconciles(session: ServerSession, id: ID): Promise<ListReconcilesResponse> {
	const { io, connection } = session;
	const response = connection
		.client(ControllerService)
		.listReconciles({ id }, { signal: io.signal })
		.catch((error: unknown) => {
			if (isOlderServer(error) || isNotFound(error)) {
				return create(ListReconcilesResponseSchema);
			}
			throw error;
		});
	return session.call(response);
}

function isNotFound(error: unknown): error is ConnectError {
	return error instanceof ConnectError && error.code === Code.NotFound;
}

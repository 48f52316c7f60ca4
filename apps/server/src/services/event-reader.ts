import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { EventReader } from "@plinth/events";
import type { ID } from "@plinth/proto";
import { type Authorizer, type Caller, denialOf, type TypeRegistry } from "@plinth/resource";
import { authenticateCall, callerOf } from "@plinth/resource-service";
import type { Logger } from "@plinth/runtime";
import { type StorageBackend, StorageError } from "@plinth/storage";

/** What decides whether callers may read resources. */
export interface EventReaderOptions {
	readonly authorizer: Authorizer;
	readonly registry: TypeRegistry;
	readonly backend: Pick<StorageBackend, "lookup">;
	readonly logger: Logger;
}

/**
 * The rights of a caller on events: those on their resources.
 *
 * @throws ConnectError Unauthenticated.
 */
export async function eventReaderOf(
	{ authorizer, registry, backend, logger }: EventReaderOptions,
	call: HandlerContext,
): Promise<EventReader> {
	const access = await authenticateCall(authorizer, call);
	const caller = callerOf(registry, access, call);
	return {
		ended: access.ended,
		async mayRead(id) {
			try {
				return caller === undefined || (await mayRead(caller, id, backend));
			} catch (error) {
				if (error instanceof StorageError) {
					throw new ConnectError(error.message, Code.Unavailable);
				}
				// A hook that fails for one resource hides that one. Controllers may have made its name up.
				logger.debug({ err: error }, "could not decide who may read an event");
				return false;
			}
		},
	};
}

/** Whether the caller may read the incarnation, or any of its name if that no longer exists. */
async function mayRead(
	caller: Caller,
	{ type, tenancy, name, uid }: ID,
	backend: Pick<StorageBackend, "lookup">,
): Promise<boolean> {
	if (type === undefined) {
		return false;
	}
	const named = { type, tenancy: tenancy ?? {}, name };
	const byName = caller.decideReference({ ...named, isCrossTenancy: false });
	if (denialOf(byName) !== undefined || byName.kind === "allowed") {
		return byName.kind === "allowed";
	}
	// A hook that decides by the data must not see those of another incarnation.
	const stored = await backend.lookup(named);
	return stored?.id !== undefined && stored.id.uid === uid && caller.mayRead(stored);
}

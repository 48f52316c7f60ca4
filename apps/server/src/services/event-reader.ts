import type { HandlerContext } from "@connectrpc/connect";
import type { EventReader } from "@plinth/events";
import type { ID } from "@plinth/proto";
import { type Authorizer, type Caller, denialOf, type TypeRegistry } from "@plinth/resource";
import { authenticateCall, callerOf } from "@plinth/resource-service";
import type { StorageBackend } from "@plinth/storage";

/** What decides whether callers may read resources. */
export interface EventReaderOptions {
	readonly authorizer: Authorizer;
	readonly registry: TypeRegistry;
	readonly backend: Pick<StorageBackend, "lookup">;
}

/**
 * The rights of a caller on events: those on their resources.
 *
 * @throws ConnectError Unauthenticated.
 */
export async function eventReaderOf(
	{ authorizer, registry, backend }: EventReaderOptions,
	call: HandlerContext,
): Promise<EventReader> {
	const access = await authenticateCall(authorizer, call);
	const caller = callerOf(registry, access, call);
	return {
		ended: access.ended,
		mayRead: async (id) => caller === undefined || mayRead(caller, id, backend),
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
	const stored = await backend.lookup(named);
	// A hook that decides by the data must not see those of another incarnation.
	const decision = caller.decideReference(
		{ ...named, isCrossTenancy: false },
		stored?.id?.uid === uid ? stored : undefined,
	);
	return denialOf(decision) === undefined && decision.kind === "allowed";
}

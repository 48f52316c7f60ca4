import type { DescMessage } from "@bufbuild/protobuf";
import type { Queries, Reader } from "@plinth/cache";
import type { ID, Resource } from "@plinth/proto";
import type { Decoded, EventInit, ResourceInit, ResourceType } from "@plinth/resource";
import type { Clock, Logger } from "@plinth/runtime";
import type { ResourceClient } from "../client/resource-client.ts";
import type { StatusInit, WriteInit, WriteResult } from "../client/resource-helpers.ts";
import type { WorkHold } from "./share.ts";

/** The context of an initializer. It has no cache, which is created later. */
export interface InitializeContext {
	/**
	 * The resource service. Requests and responses are copied; reads end with `signal`. Writes must be
	 * awaited: they are refused once the work has ended.
	 */
	readonly client: ResourceClient;
	readonly logger: Logger;
	readonly clock: Clock;
	/** Aborts when the work should end early: at a time limit, a lost lease or a stop. */
	readonly signal: AbortSignal;

	/** Reads a resource from the server; `undefined` if it does not exist. */
	read<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		id: ID,
	): Promise<Decoded<Desc> | undefined>;
	/** Writes a resource and returns it as stored. */
	write<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		init: WriteInit<Desc>,
	): Promise<Decoded<Desc>>;
	/** Deletes a resource, of any version or of the given one. Deleting a missing one is not an error. */
	delete(id: ID, options?: { readonly version?: string }): Promise<void>;
	/**
	 * Writes a computed resource only if its data, or other fields set in `init`, differ from the cached
	 * one (from the server's if its type is not cached). An existing one is replaced by
	 * compare-and-swap, and keeps the fields that `init` omits. A missing one is only created.
	 *
	 * @throws ConnectError Aborted or AlreadyExists if another writer was first: the reconcile is to be repeated.
	 */
	writeIfChanged<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		init: ResourceInit<Desc>,
	): Promise<WriteResult>;
	/** Writes a status only if it differs from the one in `resource`. */
	writeStatusIfChanged(resource: Resource, status: StatusInit): Promise<WriteResult>;
}

/** The context of a reconcile. */
export interface ReconcileContext<Q extends Queries = Queries> extends InitializeContext {
	/** The controller's cache; it returns copies that belong to the caller. */
	readonly cache: Reader<Q>;
	/** The hold under which the reconcile runs. */
	readonly hold: WorkHold;
	/**
	 * Records an event of the reconciled resource, or of `resource`, for people: `plinth events` and `plinth describe` show
	 * it. Returns at once. The same event again is counted; see `EventRecorder`.
	 *
	 * @throws Error if the reason is no word in upper camel case, or the message is empty.
	 */
	event(event: EventInit, resource?: ID): void;
}

/** The context of a mapper. */
export interface MapperContext {
	/** The controller's cache; it returns copies that belong to the caller. */
	readonly cache: Reader;
	readonly logger: Logger;
	/** Aborts when the run ends, or when the mapper exceeds its time limit. */
	readonly signal: AbortSignal;
}

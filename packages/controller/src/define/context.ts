import type { DescMessage } from "@bufbuild/protobuf";
import type { Queries, Reader } from "@plinth/cache";
import type { ID, Resource } from "@plinth/proto";
import type { Decoded, ResourceInit, ResourceType } from "@plinth/resource";
import type { Clock, Logger } from "@plinth/runtime";
import type { ResourceClient } from "../client/resource-client.ts";
import type { StatusInit, WriteInit, WriteResult } from "../client/resource-helpers.ts";

/** What an initializer works with: everything but the cache, which there is not yet. */
export interface InitializeContext {
	/**
	 * The resource service. What it takes and answers is copied; reads end with `signal`. Writes
	 * must be awaited: they are refused once the work has ended.
	 */
	readonly client: ResourceClient;
	readonly logger: Logger;
	readonly clock: Clock;
	/** Aborts when the work should end early: a time limit, a lost lease, a stop. */
	readonly signal: AbortSignal;

	/** Reads a resource from the server, or `undefined` where there is none. */
	read<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		id: ID,
	): Promise<Decoded<Desc> | undefined>;
	/** Writes a resource, and answers it as stored. */
	write<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		init: WriteInit<Desc>,
	): Promise<Decoded<Desc>>;
	/** Deletes a resource, of whichever version or of the one given. A missing one is no error. */
	delete(id: ID, options?: { readonly version?: string }): Promise<void>;
	/**
	 * Writes a computed resource only where it differs, in its data or in what else is given, from
	 * the cached one (where its type is not cached, from the server's). An existing one is replaced
	 * by compare-and-swap, and keeps what is not given.
	 */
	writeIfChanged<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		init: ResourceInit<Desc>,
	): Promise<WriteResult>;
	/** Writes a status only where it differs from the one in `resource`. */
	writeStatusIfChanged(resource: Resource, status: StatusInit): Promise<WriteResult>;
}

/** What a reconciler works with. */
export interface ReconcileContext<Q extends Queries = Queries> extends InitializeContext {
	/** The controller's cache; what it answers is the caller's own copy. */
	readonly cache: Reader<Q>;
}

/** What a mapper works with. */
export interface MapperContext {
	/** The controller's cache; what it answers is the caller's own copy. */
	readonly cache: Reader;
	readonly logger: Logger;
	/** Aborts when the run ends, or the mapper has taken too long. */
	readonly signal: AbortSignal;
}

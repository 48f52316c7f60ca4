import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Resource, ResourceService, WatchListRequest } from "@plinth/proto";
import { type Authorizer, type EventRecorder, noEvents, type TypeRegistry } from "@plinth/resource";
import { type Logger, type Runtime, silentLogger, systemRuntime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { ErrorBoundary } from "./errors/error-boundary.ts";
import { EventEncoding } from "./read/event-encoding.ts";
import { JsonForms } from "./read/json-forms.ts";
import { list } from "./read/list.ts";
import { listByOwner } from "./read/list-by-owner.ts";
import { PagedLists } from "./read/paged-lists.ts";
import { read } from "./read/read.ts";
import { admitAllWatches, type WatchAdmission } from "./read/watch-admission.ts";
import { WatchList } from "./read/watch-list.ts";
import { WatchSet } from "./read/watch-set.ts";
import { atPosition, reachForCaller } from "./requests/position.ts";
import type { ServiceContext } from "./service-context.ts";
import { MessageRules } from "./validation/message-rules.ts";
import { deleteResource } from "./write/delete.ts";
import { mutateAndValidate, write } from "./write/write.ts";
import { writeStatus } from "./write/write-status.ts";

/** The options of a resource service. */
export interface ResourceServiceOptions {
	readonly backend: StorageBackend;
	/** The registered types. Types may be added until the first call. */
	readonly registry: TypeRegistry;
	/** Decides what callers may do. There is no default, so that no service is open by accident. */
	readonly authorizer: Authorizer;
	/** The region of the service, if it has one: in requests, it means what is no copy of another region. */
	readonly region?: string | undefined;
	/**
	 * Whether the callers are parts of the server itself. Their lists and watches do not count towards the share
	 * of a subject in the memory that snapshots may retain, and are ended only after those of all others.
	 */
	readonly isInternal?: boolean;
	readonly runtime?: Runtime;
	/** Receives each internal error once. */
	readonly logger?: Logger;
	/** Records deletions that are refused, and those that wait. By default nothing does. */
	readonly events?: EventRecorder;
	/** Admits the watches of sets. By default, all are admitted: up to 100 in each set. */
	readonly watchAdmission?: WatchAdmission;
}

/** The methods of a ResourceService. A watch that it serves may be part of a `WatchSet`. */
export interface ResourceServiceMethods extends ServiceImpl<typeof ResourceService> {
	watchList(request: WatchListRequest, call: HandlerContext): WatchList;
}

/**
 * Creates a ResourceService over a storage backend, for any Connect router. Several of them, with different
 * authorizers, may share one backend.
 */
export function createResourceService(options: ResourceServiceOptions): ResourceServiceMethods {
	const { runtime = systemRuntime, logger = silentLogger, isInternal = false } = options;
	const { events = noEvents, watchAdmission = admitAllWatches } = options;
	const context: ServiceContext = {
		...options,
		isInternal,
		runtime,
		logger,
		events,
		rules: new MessageRules(options.registry),
		pagedLists: new PagedLists(runtime),
		jsonForms: new JsonForms(options.registry),
		eventEncoding: new EventEncoding(),
	};
	const boundary = new ErrorBoundary(logger);
	const { jsonForms } = context;
	/** Responses are literals: `create` inspects each field, which costs as much as a read. */
	const respond = <Name extends string>(
		$typeName: Name,
		method: string,
		call: HandlerContext,
		run: () => Promise<Resource>,
	) => {
		const fail = (failure: unknown) => {
			throw boundary.explain(method, call, failure);
		};
		return atPosition(context, call, run).then((resource) => {
			try {
				return { $typeName, resource: jsonForms.formFor(call)(resource) };
			} catch (failure) {
				return fail(failure);
			}
		}, fail);
	};
	const run = <T>(method: string, call: HandlerContext, respondAt: () => Promise<T>) =>
		boundary.run(method, call, () => atPosition(context, call, respondAt));
	return {
		read: (request, call) =>
			respond("plinth.resource.v1.ReadResponse", "Read", call, () => read(context, request, call)),
		write: (request, call) =>
			respond("plinth.resource.v1.WriteResponse", "Write", call, () =>
				write(context, request, call),
			),
		writeStatus: (request, call) =>
			respond("plinth.resource.v1.WriteStatusResponse", "WriteStatus", call, () =>
				writeStatus(context, request, call),
			),
		list: (request, call) => run("List", call, () => list(context, request, call)),
		listByOwner: (request, call) =>
			run("ListByOwner", call, () => listByOwner(context, request, call)),
		delete: (request, call) =>
			run("Delete", call, async () => ({
				$typeName: "plinth.resource.v1.DeleteResponse" as const,
				version: await deleteResource(context, request, call),
			})),
		mutateAndValidate: (request, call) =>
			respond("plinth.resource.v1.MutateAndValidateResponse", "MutateAndValidate", call, () =>
				mutateAndValidate(context, request.resource, call),
			),
		watchList: (request, call) =>
			new WatchList(context, request, call, (failure) =>
				boundary.explain("WatchList", call, failure),
			),
		watchSet: (request, call) => {
			const explain = (failure: unknown) => boundary.explain("WatchSet", call, failure);
			return new WatchSet(request, call, {
				admission: watchAdmission,
				watchList: (watch) => new WatchList(context, watch, call, explain),
				reachPosition: () => boundary.run("WatchSet", call, () => reachForCaller(context, call)),
			});
		},
	};
}

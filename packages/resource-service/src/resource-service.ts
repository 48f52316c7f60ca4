import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import type { Resource, ResourceService } from "@plinth/proto";
import type { Authorizer, TypeRegistry } from "@plinth/resource";
import { type Logger, type Runtime, silentLogger, systemRuntime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { toConnectError } from "./errors/storage-failure.ts";
import { JsonForms } from "./read/json-forms.ts";
import { list } from "./read/list.ts";
import { listByOwner } from "./read/list-by-owner.ts";
import { PagedLists } from "./read/paged-lists.ts";
import { read } from "./read/read.ts";
import { WatchList } from "./read/watch-list.ts";
import { sendableError } from "./requests/limits.ts";
import type { ServiceContext } from "./service-context.ts";
import { MessageRules } from "./validation/message-rules.ts";
import { deleteResource } from "./write/delete.ts";
import { mutateAndValidate, write } from "./write/write.ts";
import { writeStatus } from "./write/write-status.ts";

/** What a resource service is made of. */
export interface ResourceServiceOptions {
	readonly backend: StorageBackend;
	/** The types that it serves. Types may be registered until the first call. */
	readonly registry: TypeRegistry;
	/** Decides what callers may do; there is no default, so that no one leaves it open by accident. */
	readonly authorizer: Authorizer;
	/**
	 * Whether the callers are parts of the server itself. Their lists and watches have no share of the
	 * memory that snapshots may retain, and are ended only when those of all others are.
	 */
	readonly isInternal?: boolean;
	readonly runtime?: Runtime;
	/** Learns of faults of the server, once each. */
	readonly logger?: Logger;
}

/**
 * The resource API over a storage, as an implementation for any Connect router. Several of them,
 * with different authorizers, may share one storage.
 */
export function createResourceService(
	options: ResourceServiceOptions,
): ServiceImpl<typeof ResourceService> {
	const { runtime = systemRuntime, logger = silentLogger, isInternal = false } = options;
	const context: ServiceContext = {
		...options,
		isInternal,
		runtime,
		logger,
		rules: new MessageRules(options.registry),
		pagedLists: new PagedLists(runtime),
		jsonForms: new JsonForms(options.registry),
	};
	const guard = new FaultGuard(logger);
	const { jsonForms } = context;
	/** Answers are made as literals: `create` looks at each field, which costs as much as a read. */
	const answer = async <Name extends string>(
		$typeName: Name,
		call: HandlerContext,
		resource: Promise<Resource>,
	) => ({ $typeName, resource: jsonForms.shownTo(call)(await resource) });
	return {
		read: (request, call) =>
			guard.run("Read", call, () =>
				answer("plinth.resource.v1.ReadResponse", call, read(context, request, call)),
			),
		write: (request, call) =>
			guard.run("Write", call, () =>
				answer("plinth.resource.v1.WriteResponse", call, write(context, request, call)),
			),
		writeStatus: (request, call) =>
			guard.run("WriteStatus", call, () =>
				answer("plinth.resource.v1.WriteStatusResponse", call, writeStatus(context, request, call)),
			),
		list: (request, call) => guard.run("List", call, () => list(context, request, call)),
		listByOwner: (request, call) =>
			guard.run("ListByOwner", call, async () => ({
				$typeName: "plinth.resource.v1.ListByOwnerResponse" as const,
				resources: (await listByOwner(context, request, call)).map(jsonForms.shownTo(call)),
			})),
		delete: (request, call) =>
			guard.run("Delete", call, async () => ({
				$typeName: "plinth.resource.v1.DeleteResponse" as const,
				version: await deleteResource(context, request, call),
			})),
		mutateAndValidate: (request, call) =>
			guard.run("MutateAndValidate", call, () =>
				answer(
					"plinth.resource.v1.MutateAndValidateResponse",
					call,
					mutateAndValidate(context, request.resource, call),
				),
			),
		watchList: (request, call) =>
			new WatchList(context, request, call, (failure) => guard.explain("WatchList", call, failure)),
	};
}

/**
 * Turns what a method throws into what its caller is told. A fault that only a bug explains is
 * logged once, with its cause, and told as Internal with nothing of its insides.
 */
class FaultGuard {
	readonly #logger: Logger;

	constructor(logger: Logger) {
		this.#logger = logger;
	}

	async run<T>(method: string, call: HandlerContext, answer: () => Promise<T>): Promise<T> {
		try {
			return await answer();
		} catch (failure) {
			throw this.explain(method, call, failure);
		}
	}

	/** What the caller is told of what a method threw. */
	explain(method: string, call: HandlerContext, failure: unknown): ConnectError {
		const known = toConnectError(failure);
		if (known !== undefined) {
			return sendableError(known);
		}
		if (call.signal.aborted) {
			return ConnectError.from(call.signal.reason, Code.Canceled);
		}
		this.#logger.error({ method, err: failure }, "resource service fault");
		return new ConnectError("internal error", Code.Internal);
	}
}

import type { ServiceImpl } from "@connectrpc/connect";
import type { HistoryService } from "@plinth/proto";
import type { Authorizer, TypeRegistry } from "@plinth/resource";
import { type Logger, type Runtime, silentLogger, systemRuntime } from "@plinth/runtime";
import type { HistorySource, StorageBackend } from "@plinth/storage";
import { ErrorBoundary } from "../errors/error-boundary.ts";
import { JsonForms } from "../read/json-forms.ts";
import { listVersions } from "./list-versions.ts";

/** The options of a history service. */
export interface HistoryServiceOptions {
	readonly backend: Pick<StorageBackend, "lookup">;
	/** The recent versions of the resources in the storage. */
	readonly histories: HistorySource;
	/** Types may be registered until the first call. */
	readonly registry: TypeRegistry;
	/** The region of the service, if it has one. */
	readonly region?: string | undefined;
	readonly authorizer: Authorizer;
	readonly runtime?: Runtime;
	/** Receives each internal error once. */
	readonly logger?: Logger;
}

/** Creates a HistoryService for any Connect router. Its callers need the rights that ResourceService.Read requires. */
export function createHistoryService(
	options: HistoryServiceOptions,
): ServiceImpl<typeof HistoryService> {
	const { runtime = systemRuntime, logger = silentLogger, registry } = options;
	const boundary = new ErrorBoundary(logger);
	const context = { ...options, runtime, jsonForms: new JsonForms(registry) };
	return {
		listVersions: (request, call) =>
			boundary.run("ListVersions", call, () => listVersions(context, request, call)),
	};
}

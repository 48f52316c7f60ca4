import type { Authorizer, EventRecorder, TypeRegistry } from "@plinth/resource";
import type { Logger, Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import type { EventEncoding } from "./read/event-encoding.ts";
import type { JsonForms } from "./read/json-forms.ts";
import type { PagedLists } from "./read/paged-lists.ts";
import type { MessageRules } from "./validation/message-rules.ts";

/** The components that all methods of one resource service share. */
export interface ServiceContext {
	readonly backend: StorageBackend;
	readonly registry: TypeRegistry;
	readonly authorizer: Authorizer;
	/** The region of the service, if it has one. */
	readonly region?: string | undefined;
	/** Whether the callers are parts of the server itself. Their watches are ended last. */
	readonly isInternal: boolean;
	readonly runtime: Runtime;
	readonly logger: Logger;
	readonly events: EventRecorder;
	readonly rules: MessageRules;
	readonly pagedLists: PagedLists;
	readonly jsonForms: JsonForms;
	readonly eventEncoding: EventEncoding;
}

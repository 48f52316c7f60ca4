import type { DescMessage } from "@bufbuild/protobuf";
import type { Cache, Reader } from "@plinth/cache";
import type { ID, Resource } from "@plinth/proto";
import {
	type Decoded,
	displayName,
	type EventInit,
	eventProblem,
	type ResourceInit,
	type ResourceType,
} from "@plinth/resource";
import type { Clock, Logger } from "@plinth/runtime";
import {
	readResource,
	type StatusInit,
	type WriteInit,
	type WriteResult,
	writeIfDifferent,
	writeResource,
	writeStatusIfDifferent,
} from "../client/resource-helpers.ts";
import { RuntimeClient, type RuntimeClientOptions } from "../client/runtime-client.ts";
import type { InitializeContext } from "../define/context.ts";
import type { WorkHold } from "../define/share.ts";
import type { Task } from "../queue/task.ts";
import { withFields } from "./log-fields.ts";
import type { RunEnvironment } from "./run-environment.ts";

/** The parts that all tasks of one run share. */
export interface WorkScope {
	readonly environment: RunEnvironment;
	readonly hold: WorkHold;
	/** The encoded fence of the hold. */
	readonly fence: string | undefined;
	/** Why writes are refused now, or `undefined`. */
	readonly refusal: () => string | undefined;
}

/**
 * The context of one task. Parts that most tasks do not need (signals, loggers) are created on first
 * access.
 */
export class WorkContext<View extends Reader | undefined> implements InitializeContext {
	readonly client: RuntimeClient;
	readonly cache: View;
	readonly #scope: WorkScope;
	readonly #task: Task;
	readonly #shared: Cache | undefined;
	readonly #reconciled: ID | undefined;
	#logger: Logger | undefined;

	/** @param reconciled - the resource whose reconcile the task is. */
	constructor(
		scope: WorkScope,
		task: Task,
		views: { readonly cache: View; readonly shared: Cache | undefined },
		onWritten: RuntimeClientOptions["onWritten"],
		reconciled?: ID,
	) {
		this.#reconciled = reconciled;
		this.#scope = scope;
		this.#task = task;
		this.cache = views.cache;
		this.#shared = views.shared;
		this.client = new RuntimeClient({
			client: scope.environment.cloningClient,
			controller: scope.environment.controller.name,
			signal: () => task.signal,
			fence: scope.fence,
			refusal: scope.refusal,
			onWritten,
		});
	}

	get signal(): AbortSignal {
		return this.#task.signal;
	}

	get hold(): WorkHold {
		return this.#scope.hold;
	}

	get clock(): Clock {
		return this.#scope.environment.runtime.clock;
	}

	get logger(): Logger {
		this.#logger ??= withFields(this.#scope.environment.logger, { key: this.#task.key });
		return this.#logger;
	}

	read<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		id: ID,
	): Promise<Decoded<Desc> | undefined> {
		return readResource(this.client, type, id);
	}

	write<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		init: WriteInit<Desc>,
	): Promise<Decoded<Desc>> {
		return writeResource(this.client, type, init);
	}

	async delete(id: ID, options: { readonly version?: string } = {}): Promise<void> {
		await this.client.delete({ id, version: options.version ?? "" });
	}

	async writeIfChanged<Desc extends DescMessage>(
		type: ResourceType<Desc>,
		init: ResourceInit<Desc>,
	): Promise<WriteResult> {
		if (init.id.region) {
			throw new Error(`${displayName(init.id)} is a copy: it can be written in its region alone`);
		}
		const isCached = this.#shared?.types.some((cached) => cached.key === type.key);
		// A resource that the cache lacks may just have been created: a write without a version would replace it.
		const existing =
			(isCached ? this.cache?.get(type, init.id) : undefined) ??
			(await readResource(this.client, type, init.id));
		return writeIfDifferent(this.client, type, existing, init);
	}

	event(event: EventInit, resource = this.#reconciled): void {
		const problem =
			eventProblem(event) ??
			(resource?.type === undefined || resource.name === ""
				? `the event ${event.reason} has no resource with a type and a name`
				: undefined);
		if (problem !== undefined || resource === undefined) {
			throw new Error(problem);
		}
		const { controller, events } = this.#scope.environment;
		const { reason, message, severity = "normal" } = event;
		events.record({ reason, message, severity, resource, source: controller.name });
	}

	writeStatusIfChanged(resource: Resource, status: StatusInit): Promise<WriteResult> {
		const key = status.key ?? this.#scope.environment.controller.name;
		return writeStatusIfDifferent(this.client, resource, key, status);
	}
}

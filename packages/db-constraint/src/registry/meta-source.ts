import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { Resource, ResourceService } from "@plinth/proto";
import type { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { Backoff, type Logger, type Runtime } from "@plinth/runtime";
import { strongly } from "./meta-calls.ts";
import { DeletedDeployment, Deployment, Service } from "./meta-types.ts";
import type { FollowedType, RegistryView } from "./registry-view.ts";

/** A meta deployment that is known by its address. */
export interface MetaSource {
	/** Identifies it in the registry view and in messages. */
	readonly address: string;
	readonly client: Client<typeof ResourceService>;
	/** For what deployments report to it; absent if this is the server itself. */
	readonly mixin?: Client<typeof SchemaMixinService>;
}

/** Options of `followMeta`. */
export interface FollowMetaOptions {
	readonly source: MetaSource;
	readonly view: RegistryView;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** Called after each change of the registry view. */
	readonly onChange: () => void;
	/** Called when the snapshot of a type is complete, and when a watch breaks. */
	readonly onStep: (step: "complete" | "broken", type: FollowedType) => void;
}

/** The backoff after which a broken watch resumes. */
const restart = { baseMs: 200, maxMs: 5_000 } as const;

/** The types that are followed, and whose snapshots must be complete. */
export const followedTypes: readonly FollowedType[] = ["deployments", "services", "deletions"];

const types = { deployments: Deployment, services: Service, deletions: DeletedDeployment };

/** Follows a meta deployment until the signal aborts, and resumes broken watches. */
export async function followMeta(options: FollowMetaOptions, signal: AbortSignal): Promise<void> {
	await Promise.all(followedTypes.map((type) => followType(options, type, signal)));
}

async function followType(
	options: FollowMetaOptions,
	type: FollowedType,
	signal: AbortSignal,
): Promise<void> {
	const { source, runtime, logger, onStep } = options;
	const watched = new TypeWatch(options, type);
	const { clock, random } = runtime;
	const backoff = new Backoff({ ...restart, clock, random });
	while (!signal.aborted) {
		try {
			await watched.run(signal, () => {
				backoff.reset();
			});
		} catch (failure) {
			if (signal.aborted) {
				return;
			}
			logger.debug({ err: failure, meta: source.address, type }, "a watch of the registry broke");
		}
		onStep("broken", type);
		await backoff.wait(signal).catch(() => {});
	}
}

/** The watch of one type at one source. Keeps the version at which to resume. */
class TypeWatch {
	readonly #options: FollowMetaOptions;
	readonly #name: FollowedType;
	#version = "";

	constructor(options: FollowMetaOptions, name: FollowedType) {
		this.#options = options;
		this.#name = name;
	}

	async run(signal: AbortSignal, onEvent: () => void): Promise<void> {
		const { source, view, onChange, onStep } = this.#options;
		const { type } = types[this.#name];
		const seen = new Set<string>();
		const isFresh = this.#version === "";
		// A snapshot is one change, however many deployments it has.
		let isLoading = isFresh;
		let isComplete = false;
		// A client of Connect does not end a stream whose reader stops.
		const stopped = new AbortController();
		try {
			// A snapshot says which deployments exist. One that resumes goes on from what was seen, whichever server responds.
			const events = source.client.watchList(
				{ type, afterVersion: this.#version, bookmarks: true },
				{
					signal: AbortSignal.any([signal, stopped.signal]),
					...(isFresh && { headers: strongly }),
				},
			);
			for await (const { event, version } of events) {
				onEvent();
				switch (event.case) {
					case "upsert":
					case "delete": {
						const { resource } = event.value;
						if (resource !== undefined) {
							seen.add(resource.id?.uid ?? "");
							this.#apply(resource, event.case === "upsert" ? "stored" : "removed", isLoading);
						}
						break;
					}
					case "endOfSnapshot":
						if (isFresh) {
							view.retain(source.address, this.#name, seen);
							isLoading = false;
							onChange();
						}
						break;
				}
				this.#version = version || this.#version;
				// A watch that resumes has no end of a snapshot: its first event shows that it is followed again.
				if (!(isLoading || isComplete)) {
					isComplete = true;
					onStep("complete", this.#name);
				}
			}
		} catch (failure) {
			if (failure instanceof Recovered || needsSnapshot(failure)) {
				this.#version = "";
			}
			throw failure;
		} finally {
			stopped.abort();
		}
	}

	/** @throws Recovered if the meta deployment has recovered with this change. */
	#apply(resource: Resource, change: "stored" | "removed", isLoading: boolean): void {
		const { source, view, onChange } = this.#options;
		const wasRecovering = view.recovering([source.address]) !== undefined;
		view.apply(source.address, resource, change);
		if (!isLoading) {
			onChange();
			if (wasRecovering && view.recovering([source.address]) === undefined) {
				throw new Recovered();
			}
		}
	}
}

/** The meta deployment is complete again: what it lacks does not exist, and a new snapshot says what that is. */
class Recovered extends Error {
	constructor() {
		super("the meta deployment has recovered from a restore");
	}
}

/** Whether a watch can't resume at its version. */
function needsSnapshot(failure: unknown): boolean {
	const { code } = ConnectError.from(failure);
	return code === Code.OutOfRange || code === Code.Aborted;
}

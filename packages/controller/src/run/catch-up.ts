import type { CallOptions } from "@connectrpc/connect";
import { type ResourceType, typeOf } from "@plinth/resource";
import { Backoff, unlessAborted } from "@plinth/runtime";
import type { OwnWrites } from "./own-writes.ts";
import type { RunEnvironment } from "./run-environment.ts";
import { settlesWithin } from "./settles-within.ts";

/** A list that matches nothing, as no name begins like this: only its version is of interest. */
const nothing = { tenancy: {}, namePrefix: "-" } as const;

const consistent = { "x-plinth-consistency-mode": "consistent" } as const;

/**
 * Resolves when the cache of the run, and all else that its reconciles read, contains all that was committed to the types
 * before the call.
 *
 * It asks for the version of each type, as of now, and waits until the watch of the type has reached it: at once
 * unless events of the type are on their way.
 *
 * @throws Error if a watch does not reach it in time; the signal's reason.
 */
export async function whenCaughtUp(
	environment: Pick<RunEnvironment, "client" | "controller" | "runtime" | "limits" | "logger">,
	types: readonly ResourceType[],
	ownWrites: OwnWrites,
	signal: AbortSignal,
): Promise<void> {
	const { runtime, limits } = environment;
	await Promise.all([
		whenAllElseCaughtUp(environment, signal),
		...types.map(async (type) => {
			const version = await newestVersion(environment, type, { signal, headers: consistent });
			const reached = ownWrites.reached(type.family, version);
			const limited = settlesWithin(runtime.clock, limits.ownWritesMs, reached);
			if (!(await unlessAborted(limited, signal))) {
				throw new Error(
					`the cache has not seen version ${version} of ${type.family} within ${limits.ownWritesMs} ms`,
				);
			}
		}),
	]);
}

/**
 * Resolves when all that reconciles read, besides the cache, contains what was committed before the call.
 *
 * @throws Error if it does not in time; the signal's reason.
 */
export async function whenAllElseCaughtUp(
	{ controller, runtime, limits }: Pick<RunEnvironment, "controller" | "runtime" | "limits">,
	signal: AbortSignal,
): Promise<void> {
	if (controller.catchUp === undefined) {
		return;
	}
	const over = new AbortController();
	const caughtUp = controller.catchUp(AbortSignal.any([signal, over.signal]));
	try {
		const limited = settlesWithin(runtime.clock, limits.ownWritesMs, caughtUp);
		if (!(await unlessAborted(limited, signal))) {
			throw new Error(
				`what controller ${controller.name} reads has not caught up within ${limits.ownWritesMs} ms`,
			);
		}
		await caughtUp;
	} finally {
		over.abort();
	}
}

/** The version of the newest commit to the type, or a later one. Retries until it is known or the signal aborts. */
async function newestVersion(
	{ client, runtime, logger }: Pick<RunEnvironment, "client" | "runtime" | "logger">,
	type: ResourceType,
	options: CallOptions & { readonly signal: AbortSignal },
): Promise<string> {
	const { clock, random } = runtime;
	const backoff = new Backoff({ clock, random, baseMs: 100, maxMs: 5_000 });
	for (;;) {
		try {
			const { typeVersion, version } = await client.list(
				{ ...nothing, type: typeOf(type.type) },
				options,
			);
			// A server of an earlier release does not say the version of the type.
			return typeVersion || version;
		} catch (err) {
			options.signal.throwIfAborted();
			logger.warn({ err, type: type.key }, "could not ask for the newest version of a type");
		}
		await backoff.wait(options.signal);
	}
}

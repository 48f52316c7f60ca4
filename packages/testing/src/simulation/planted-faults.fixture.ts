import type { CallOptions } from "@connectrpc/connect";
import type { ResourceClient } from "@plinth/controller";

/**
 * A client whose snapshots are empty, so that nothing is primed: existing resources arrive as live events.
 */
export function withoutPriming(client: ResourceClient): ResourceClient {
	return {
		...client,
		async *watchList(request, options) {
			if (request.afterVersion) {
				yield* client.watchList(request, options);
				return;
			}
			for await (const event of client.watchList(request, options)) {
				if (event.event.case === "endOfSnapshot") {
					yield { ...event, version: "0" };
				}
			}
		},
	};
}

/** A client whose responses lack the written version, so that there is nothing to wait for. */
export function withoutOwnWrites(client: ResourceClient): ResourceClient {
	return {
		...client,
		write: async (request, options) => {
			const { resource, ...rest } = await client.write(request, options);
			return { ...rest, ...(resource && { resource: { ...resource, version: "" } }) };
		},
		writeStatus: async (request, options) => {
			const { resource, ...rest } = await client.writeStatus(request, options);
			return { ...rest, ...(resource && { resource: { ...resource, version: "" } }) };
		},
		delete: async (request, options) => ({
			...(await client.delete(request, options)),
			version: "",
		}),
	};
}

/** A client whose writes carry no fence. */
export function withoutFences(client: ResourceClient): ResourceClient {
	const unfenced = (options: CallOptions | undefined) => ({ ...options, headers: {} });
	return {
		...client,
		write: (request, options) => client.write(request, unfenced(options)),
		delete: (request, options) => client.delete(request, unfenced(options)),
	};
}

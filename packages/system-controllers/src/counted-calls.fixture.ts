import type { ResourceClient } from "@plinth/controller";

/** The client, counting the calls of each method. */
export function counted(client: ResourceClient, calls: Map<string, number>): ResourceClient {
	return new Proxy(client, {
		get(target, method, receiver) {
			const call = Reflect.get(target, method, receiver);
			const name = String(method);
			return typeof call !== "function"
				? call
				: (...args: unknown[]) => {
						calls.set(name, (calls.get(name) ?? 0) + 1);
						return Reflect.apply(call, target, args);
					};
		},
	});
}

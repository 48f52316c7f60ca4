import type { ResourceClient } from "@plinth/controller";
import type { SeededScheduler } from "@plinth/runtime/testing";

/**
 * Creates a client for the test itself: awaiting one of its calls runs the scheduler. A unary call also advances the
 * clock if nothing else is left to run, since a write may wait before it retries after a conflict. Reading a
 * watch does not: if there is no event, it waits for the next action of the test.
 */
export function autoAdvancingClient(
	client: ResourceClient,
	scheduler: SeededScheduler,
): ResourceClient {
	return {
		read: (request, options) => scheduler.run(client.read(request, options)),
		list: (request, options) => scheduler.run(client.list(request, options)),
		listByOwner: (request, options) => scheduler.run(client.listByOwner(request, options)),
		mutateAndValidate: (request, options) =>
			scheduler.run(client.mutateAndValidate(request, options)),
		write: (request, options) => scheduler.run(client.write(request, options)),
		writeStatus: (request, options) => scheduler.run(client.writeStatus(request, options)),
		delete: (request, options) => scheduler.run(client.delete(request, options)),
		watchList: (request, options) => driven(client.watchList(request, options), scheduler),
		watchSet: (request, options) => driven(client.watchSet(request, options), scheduler),
	};
}

function driven<Event>(
	events: AsyncIterable<Event>,
	scheduler: SeededScheduler,
): AsyncIterable<Event> {
	return {
		[Symbol.asyncIterator]() {
			const iterator = events[Symbol.asyncIterator]();
			return {
				next: () => scheduler.drive(iterator.next()),
				return: async () => {
					const closed = Promise.resolve(iterator.return?.());
					await scheduler.drive(closed);
					return { done: true, value: undefined };
				},
			};
		},
	};
}

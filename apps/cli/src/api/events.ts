import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type Event,
	type EventFilterSchema,
	EventService,
	type ListEventsResponse,
} from "@plinth/proto/gen/plinth/event/v1/event_service_pb.js";
import { Backoff } from "@plinth/runtime";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { warn } from "../warn.ts";
import { isOlderServer } from "./older-server.ts";
import { isRefusal } from "./refusal.ts";
import { SeenEvents } from "./seen-events.ts";
import type { ServerSession } from "./server-session.ts";

/** Which events to show. */
export type EventFilterInit = MessageInitShape<typeof EventFilterSchema>;

/** The events that match, the newest first. @throws Failure, also for a server that has none. */
export function listEvents(
	session: ServerSession,
	filter: EventFilterInit,
	limit: number,
): Promise<ListEventsResponse> {
	const { io, connection } = session;
	const response = connection
		.client(EventService)
		.listEvents({ filter, limit }, { signal: io.signal })
		.catch(explainOlderServer);
	return session.call(response);
}

/** Events that have occurred, possibly again. */
export interface EventBatch {
	readonly events: readonly Event[];
	/** Whether all that were stored when the watch began have been yielded. */
	readonly isCurrent: boolean;
}

const reconnect = { baseMs: 500, maxMs: 10_000 };

/**
 * Yields the events that match, the oldest first, and then what occurs, across broken connections. What has been yielded is
 * not yielded again, unless it has occurred again or many others have since (SeenEvents).
 *
 * @throws Failure if the events can't be watched at all.
 */
export async function* followEvents(
	session: ServerSession,
	filter: EventFilterInit,
): AsyncGenerator<EventBatch, never> {
	const { io, connection } = session;
	const { server } = session.settings.endpoint;
	const seen = new SeenEvents();
	const backoff = new Backoff({ ...reconnect, clock: io.clock });
	let hasOpened = false;
	let isLost = false;
	for (;;) {
		try {
			const options = { signal: io.signal, timeoutMs: 0 };
			for await (const { events, isCurrent } of connection
				.client(EventService)
				.watchEvents({ filter }, options)) {
				if (isLost) {
					warn(io, `reconnected to ${server}`);
				}
				[hasOpened, isLost] = [true, false];
				backoff.reset();
				yield { events: seen.add(events), isCurrent };
			}
			throw new ConnectError("the server ended the watch", Code.Unavailable);
		} catch (error) {
			const failure = ConnectError.from(error);
			if (io.signal.aborted || !hasOpened || isRefusal(failure)) {
				return session.call(Promise.reject(error).catch(explainOlderServer));
			}
			if (!isLost) {
				warn(io, `lost the connection to ${server} (${failure.rawMessage}): reconnecting`);
			}
			isLost = true;
			await backoff.wait(io.signal);
		}
	}
}

function explainOlderServer(error: unknown): never {
	if (isOlderServer(error)) {
		throw new Failure(
			exitCodes.failed,
			"the server has no events: it is older than this command, which needs its EventService",
		);
	}
	throw error;
}

import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type Overview,
	ServerService,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { Backoff } from "@plinth/runtime";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { isOlderServer } from "./older-server.ts";
import { isRefusal } from "./refusal.ts";
import type { ServerSession } from "./server-session.ts";

/** What a follower of overviews receives. */
export type OverviewChange =
	| { readonly kind: "overview"; readonly overview: Overview }
	/** The connection is lost, for this reason. It is being opened again. */
	| { readonly kind: "lost"; readonly reason: string };

const reconnect = { baseMs: 500, maxMs: 10_000 };

/**
 * Yields an overview at once and after each interval, across broken connections.
 *
 * @param signal - ends it with the signal's reason.
 * @throws Failure if overviews can't be watched at all.
 */
export async function* followOverviews(
	session: ServerSession,
	intervalMs: number,
	signal: AbortSignal = session.io.signal,
): AsyncGenerator<OverviewChange, never> {
	const { io, connection } = session;
	const backoff = new Backoff({ ...reconnect, clock: io.clock });
	let hasOpened = false;
	for (;;) {
		let isOpen = false;
		try {
			const request = { interval: durationFromMs(intervalMs) };
			for await (const { overview } of connection
				.client(ServerService)
				.watchOverview(request, { signal, timeoutMs: 0 })) {
				[hasOpened, isOpen] = [true, true];
				backoff.reset();
				if (overview !== undefined) {
					yield { kind: "overview", overview };
				}
			}
			throw new ConnectError("the server ended the stream", Code.Unavailable);
		} catch (error) {
			const failure = ConnectError.from(error);
			// A stream also ends so that its client authenticates again: the next one says whether it still may.
			const authenticatesAgain = isOpen && failure.code === Code.Unauthenticated;
			if (signal.aborted || !hasOpened || (isRefusal(failure) && !authenticatesAgain)) {
				return session.call(Promise.reject(error).catch(explainOlderServer));
			}
			yield { kind: "lost", reason: failure.rawMessage };
			await backoff.wait(signal);
		}
	}
}

function explainOlderServer(error: unknown): never {
	if (isOlderServer(error)) {
		throw new Failure(
			exitCodes.failed,
			"the server has no overview: it is older than this command, which needs its ServerService",
		);
	}
	throw error;
}

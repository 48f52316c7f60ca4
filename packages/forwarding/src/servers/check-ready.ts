import { errorCode } from "@plinth/http2";
import { unlessAborted } from "@plinth/runtime";
import { agentsHeader, internalHeader } from "../headers/agent-headers.ts";
import { requestFields } from "../headers/request-headers.ts";
import type { Place } from "./server-network.ts";

/** The beginning of a report that is kept, in bytes. */
const reportBytes = 500;

/**
 * Requests `/readyz` from a server, on a connection that its calls share.
 *
 * @throws Error that says why the server is not ready, or the signal's reason.
 */
export async function checkReady(
	place: Place,
	{ agent, credential }: { readonly agent: string; readonly credential: string },
	signal: AbortSignal,
): Promise<void> {
	try {
		const session = await unlessAborted(Promise.resolve(place.session()), signal);
		signal.throwIfAborted();
		const fields = requestFields(
			{
				":method": "GET",
				":path": "/readyz",
				[agentsHeader]: agent,
				...(credential !== "" && { [internalHeader]: credential }),
			},
			session,
		);
		await new Promise<void>((resolve, reject) => {
			let status: number | undefined;
			let report = Buffer.alloc(0);
			const onAbort = () => {
				reject(signal.reason);
				stream.reset(errorCode.cancel);
			};
			const closed = () => {
				signal.removeEventListener("abort", onAbort);
				session.closed();
				reject(session.failure ?? new Error("/readyz did not respond"));
			};
			const stream = session.open(fields, {
				onHead: (received) => {
					status = received;
				},
				onData: (chunk) => {
					session.arrived();
					stream.consume(chunk.length);
					if (report.length < reportBytes) {
						report = Buffer.concat([report, chunk.subarray(0, reportBytes - report.length)]);
					}
				},
				onEnd: () => {
					if (status === 200) {
						resolve();
					} else {
						const text = report
							.toString("utf8")
							.trim()
							.replaceAll(/\s*\n\s*/g, "; ");
						reject(new Error(`/readyz responded with status ${status}: ${text}`));
					}
				},
				onFinish: closed,
				onReset: closed,
			});
			stream.end();
			signal.addEventListener("abort", onAbort, { once: true });
		});
	} finally {
		place.leave();
	}
}

import { constants, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from "node:http2";
import { unlessAborted } from "@plinth/runtime";
import { agentsHeader, internalHeader } from "../headers/agent-headers.ts";
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
		const stream = session.open({
			":method": "GET",
			":path": "/readyz",
			[agentsHeader]: agent,
			...(credential !== "" && { [internalHeader]: credential }),
		});
		await new Promise<void>((resolve, reject) => {
			let status: number | undefined;
			let report = Buffer.alloc(0);
			let failure: Error | undefined;
			const onAbort = () => {
				reject(signal.reason);
				stream.close(constants.NGHTTP2_CANCEL);
			};
			signal.addEventListener("abort", onAbort, { once: true });
			stream.on("response", (headers: IncomingHttpHeaders & IncomingHttpStatusHeader) => {
				status = headers[":status"];
			});
			stream.on("data", (chunk: Buffer) => {
				session.arrived();
				if (report.length < reportBytes) {
					report = Buffer.concat([report, chunk.subarray(0, reportBytes - report.length)]);
				}
			});
			stream.on("error", (error) => {
				failure = error;
			});
			stream.on("end", () => {
				if (status === 200) {
					resolve();
				} else {
					const text = report
						.toString("utf8")
						.trim()
						.replaceAll(/\s*\n\s*/g, "; ");
					reject(new Error(`/readyz responded with status ${status}: ${text}`));
				}
			});
			stream.on("close", () => {
				signal.removeEventListener("abort", onAbort);
				session.closed();
				reject(session.failureOf(failure) ?? failure ?? new Error("/readyz did not respond"));
			});
		});
	} finally {
		place.leave();
	}
}

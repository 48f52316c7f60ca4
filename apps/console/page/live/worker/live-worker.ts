/** The worker that receives for all tabs: a SharedWorker, or a worker of one tab in browsers without shared ones. */
import { createConnectTransport } from "@connectrpc/connect-web";
import { browserClock } from "../browser-clock.ts";
import type { ToTab, ToWorker } from "../view.ts";
import { Hub } from "./hub.ts";

const hub = new Hub({
	clock: browserClock,
	random: { next: Math.random },
	connect: (baseUrl, token) =>
		createConnectTransport({
			baseUrl,
			useBinaryFormat: true,
			fetch: (input, init) => fetch(input, { ...init, credentials: "omit", cache: "no-store" }),
			interceptors: [
				(next) => (request) => {
					if (token !== "") {
						request.header.set("authorization", `Bearer ${token}`);
					}
					return next(request);
				},
			],
		}),
});

/** A tab: the port of a shared worker, or a worker itself. */
function serve(port: Pick<MessagePort, "postMessage" | "addEventListener">): void {
	const forget = hub.add({
		post: (message: ToTab) => port.postMessage(message),
		listen: (onMessage) =>
			port.addEventListener("message", ({ data }: MessageEvent<ToWorker>) => onMessage(data)),
	});
	port.addEventListener("close", forget);
}

if ("onconnect" in self) {
	self.addEventListener("connect", (event) => {
		const [port] = (event as MessageEvent).ports;
		if (port !== undefined) {
			serve(port);
			port.start();
		}
	});
} else {
	serve(self as unknown as MessagePort);
}

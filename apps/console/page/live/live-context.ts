import { createContext, useContext } from "react";
import type { Session } from "../app/session.ts";
import { LiveClient } from "./live-client.ts";
import { liveWorkerPort } from "./worker-port.ts";

/** How often the tab says whether it can be seen, in milliseconds. */
const sayVisibleMs = 10_000;

/** Connects the tab with the worker, for as long as it is open. */
export function startLive(serverUrl: string, session: Session): LiveClient {
	const client: LiveClient = new LiveClient({
		port: liveWorkerPort((reason) => client.fail(reason)),
		serverUrl,
		session,
		isVisible: () => document.visibilityState === "visible",
		requestFrame: (callback) => requestAnimationFrame(callback),
	});
	document.addEventListener("visibilitychange", () => {
		client.sayVisible();
		if (document.visibilityState === "visible") {
			client.retryNow();
		}
	});
	addEventListener("online", () => client.retryNow());
	setInterval(() => client.sayVisible(), sayVisibleMs);
	addEventListener("pagehide", () => client.leave());
	addEventListener("pageshow", () => client.return());
	return client;
}

const Context = createContext<LiveClient | undefined>(undefined);

/** Provides the live client to the components of the page. */
export const LiveProvider = Context.Provider;

/** The live client of the page. */
export function useLive(): LiveClient {
	const client = useContext(Context);
	if (client === undefined) {
		throw new Error("the component is not within a LiveProvider");
	}
	return client;
}

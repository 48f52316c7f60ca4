import type { Port, ToTab, ToWorker } from "./view.ts";
import workerUrl from "./worker/live-worker.ts?worker&url";

/** Creates URLs of scripts. The content security policy allows one policy, with this name. */
interface ScriptUrls {
	createScriptURL(url: string): string;
}

interface TrustedTypes {
	createPolicy(name: string, rules: { createScriptURL(url: string): string }): ScriptUrls;
}

/** The name that the content security policy of the server allows. */
const policyName = "plinth-workers";

let scriptUrls: ScriptUrls | undefined;

/** The URL of a worker of this page, in the form that the content security policy requires. */
export function trustedWorkerUrl(url: string): string {
	const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes };
	scriptUrls ??= trustedTypes?.createPolicy(policyName, {
		createScriptURL: (each) => {
			if (new URL(each, document.baseURI).origin !== location.origin) {
				throw new TypeError(`${each} is not a worker of this page`);
			}
			return each;
		},
	});
	return scriptUrls === undefined ? url : scriptUrls.createScriptURL(url);
}

/** A worker, and why it does not run. */
interface StartedWorker {
	readonly worker: SharedWorker | Worker;
	failure: string | undefined;
	onFailure: (reason: string) => void;
}

let started: StartedWorker | undefined;

/** Starts the worker that receives for all tabs, or joins it. Where the browser has no shared ones, the tab has its own. */
export function startLiveWorker(): StartedWorker {
	started ??= start();
	return started;
}

function start(): StartedWorker {
	const url = trustedWorkerUrl(workerUrl);
	const options = { type: "module", name: "plinth-live" } as const;
	const worker =
		typeof SharedWorker === "function" ? new SharedWorker(url, options) : new Worker(url, options);
	const beginning: StartedWorker = { worker, failure: undefined, onFailure: () => {} };
	worker.addEventListener("error", (event) => {
		beginning.failure = (event as ErrorEvent).message || `can't load ${workerUrl}`;
		beginning.onFailure(beginning.failure);
	});
	return beginning;
}

/** The port to the worker, which is started if it was not. */
export function liveWorkerPort(onFailure: (reason: string) => void): Port<ToTab, ToWorker> {
	const begun = startLiveWorker();
	begun.onFailure = onFailure;
	const { worker, failure } = begun;
	if (failure !== undefined) {
		// Not before the caller has its port.
		queueMicrotask(() => onFailure(failure));
	}
	const port = worker instanceof Worker ? worker : worker.port;
	return {
		post: (message) => port.postMessage(message),
		listen: (onMessage) => {
			port.addEventListener("message", (event) => onMessage((event as MessageEvent<ToTab>).data));
			if ("start" in port) {
				port.start();
			}
		},
	};
}

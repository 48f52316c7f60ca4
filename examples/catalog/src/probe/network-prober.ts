import { get } from "node:http";
import { connect } from "node:net";
import type { ProbeResult, Prober } from "./prober.ts";
import { addressOf, type ProbeTarget } from "./target.ts";

/** Probes over the network with a new connection each time, since a pooled one may outlive its listener. */
export const networkProber: Prober = (target, signal) =>
	target.kind === "http" ? probeHttp(target, signal) : probeTcp(target, signal);

function probeHttp(
	target: Extract<ProbeTarget, { kind: "http" }>,
	signal: AbortSignal,
): Promise<ProbeResult> {
	const { host, port, path } = target;
	const address = addressOf(target);
	return new Promise((resolve, reject) => {
		const request = get({ host, port, path, agent: false, signal }, (response) => {
			const status = response.statusCode ?? 0;
			resolve({
				passed: status >= 200 && status < 300,
				reason: status >= 200 && status < 300 ? "Answered" : "BadStatus",
				message: `GET ${address}: ${status}`,
			});
			// The body may be endless.
			request.destroy();
		});
		request.on("error", (error) => settle(error, address, signal, resolve, reject));
	});
}

function probeTcp(
	target: Extract<ProbeTarget, { kind: "tcp" }>,
	signal: AbortSignal,
): Promise<ProbeResult> {
	const { host, port } = target;
	const address = addressOf(target);
	return new Promise((resolve, reject) => {
		const socket = connect({ host, port, signal });
		socket.once("connect", () => {
			resolve({ passed: true, reason: "Connected", message: `${address} accepts connections` });
			socket.destroy();
		});
		socket.on("error", (error) => settle(error, address, signal, resolve, reject));
	});
}

function settle(
	error: NodeJS.ErrnoException,
	address: string,
	signal: AbortSignal,
	resolve: (result: ProbeResult) => void,
	reject: (reason: unknown) => void,
): void {
	if (signal.aborted) {
		reject(signal.reason);
		return;
	}
	const refused = error.code === "ECONNREFUSED";
	resolve({
		passed: false,
		reason: refused ? "ConnectionRefused" : "ConnectionFailed",
		message: refused
			? `${address} refuses connections`
			: `${address}: ${error.code ?? error.message}`,
	});
}

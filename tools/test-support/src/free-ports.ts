import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Ports below those that Linux gives to clients and to servers without a port of their own (32768 to 60999 by default):
 * none of them takes a port between the choice and its use.
 */
const first = 10_000;
const count = 22_000;

/** What this process has chosen before. */
const chosen = new Set<number>();

/** A port of 127.0.0.1 that no process listens on, and that this process is not given again. */
export async function freePort(): Promise<number> {
	for (;;) {
		const port = first + Math.floor(Math.random() * count);
		if (!chosen.has(port) && (await isFree(port))) {
			chosen.add(port);
			return port;
		}
	}
}

/** Different free ports. */
export async function freePorts(length: number): Promise<readonly number[]> {
	return Promise.all(Array.from({ length }, freePort));
}

/** Whether a server can listen on a port of 127.0.0.1. */
export async function isFree(port: number): Promise<boolean> {
	const server = createServer();
	try {
		await once(server.listen(port, "127.0.0.1"), "listening");
		return true;
	} catch {
		return false;
	} finally {
		server.close();
	}
}

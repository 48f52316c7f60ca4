import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ports that the system gives to outgoing connections. */
const [lowest, highest] = [10_000, 32_000];

/** The first of so many ports in a row on which nothing listens now, chosen at random. */
export async function freePorts(count: number): Promise<number> {
	for (let tries = 0; tries < 100; tries++) {
		const first = lowest + Math.floor(Math.random() * (highest - lowest - count));
		const all = Array.from({ length: count }, (_, at) => first + at);
		if ((await Promise.all(all.map(isFree))).every(Boolean)) {
			return first;
		}
	}
	throw new Error(`no ${count} ports in a row are free`);
}

async function isFree(port: number): Promise<boolean> {
	const server = createServer();
	try {
		server.listen(port, "127.0.0.1");
		await once(server, "listening");
		server.close();
		await once(server, "close");
		return true;
	} catch {
		return false;
	}
}

import { once } from "node:events";
import { createServer, request } from "node:http";
import { onTestFinished } from "vitest";

/** A proxy. */
export interface Proxy {
	readonly url: string;
	/** The paths of the requests that are open. */
	readonly open: readonly string[];
	/** How many requests were refused. */
	readonly refused: number;
	/** Ends all connections and refuses requests, or accepts them again. */
	refuse(isRefusing: boolean): void;
}

/** Serves a server below a prefix, as a proxy of an organization does, until the test is over. It speaks HTTP/1.1. */
export async function startPrefixProxy(address: string, prefix: string): Promise<Proxy> {
	const { hostname, port } = new URL(address);
	const open: string[] = [];
	let [isRefusing, refused] = [false, 0];
	const proxy = createServer((incoming, outgoing) => {
		const { url = "", method, headers } = incoming;
		if (isRefusing) {
			refused += 1;
			outgoing.destroy();
			return;
		}
		if (!url.startsWith(prefix)) {
			outgoing.writeHead(404).end();
			return;
		}
		const path = url.slice(prefix.length);
		const forwarded = request({ hostname, port, method, headers, path }, (response) => {
			outgoing.writeHead(response.statusCode ?? 502, response.headers);
			response.pipe(outgoing);
		});
		forwarded.on("error", () => outgoing.destroy());
		open.push(path);
		outgoing.on("close", () => {
			open.splice(open.indexOf(path), 1);
			forwarded.destroy();
		});
		incoming.pipe(forwarded);
	});
	proxy.listen(0, "127.0.0.1");
	await once(proxy, "listening");
	onTestFinished(() => {
		proxy.closeAllConnections();
		proxy.close();
	});
	const bound = proxy.address();
	const own = typeof bound === "object" ? bound?.port : "";
	return {
		url: `http://127.0.0.1:${own}${prefix}`,
		open,
		get refused() {
			return refused;
		},
		refuse: (becomesRefusing) => {
			isRefusing = becomesRefusing;
			if (isRefusing) {
				proxy.closeAllConnections();
			}
		},
	};
}

import { once } from "node:events";
import { createServer, type Server } from "node:net";

/** Different ports that no process listens on. */
export async function freePorts(count: number): Promise<readonly number[]> {
	const servers: Server[] = [];
	for (let at = 0; at < count; at += 1) {
		const server = createServer().listen(0, "127.0.0.1");
		await once(server, "listening");
		servers.push(server);
	}
	return servers.map((server) => {
		const address = server.address();
		server.close();
		return typeof address === "object" && address !== null ? address.port : 0;
	});
}

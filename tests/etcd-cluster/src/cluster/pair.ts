import { create } from "@bufbuild/protobuf";
import { idOf, resourceOf } from "@plinth/resource";
import { LabelSchema } from "@plinth/resource-service/testing";
import type { Life } from "../clients/life.ts";
import { Task } from "../module/types.ts";
import type { Cluster } from "./cluster.ts";
import type { ServerProcess } from "./server-process.ts";

/** Two servers, and what they are now. */
export interface Pair {
	readonly lives: readonly [Life, Life];
	serverOf(pid: number): ServerProcess;
	lifeOf(server: ServerProcess): Life;
}

/** The two servers of a cluster of two. */
export async function pairOf({ servers }: Cluster): Promise<Pair> {
	const ever = new AbortController().signal;
	const [one, other] = await Promise.all(servers.map((server) => server.life(ever)));
	if (one === undefined || other === undefined) {
		throw new Error("a pair is two servers");
	}
	return {
		lives: [one, other],
		serverOf(pid) {
			const server = servers.find((each) => each.pid === pid);
			if (server === undefined) {
				throw new Error(`no server is process ${pid}`);
			}
			return server;
		},
		lifeOf: (server) => (server === servers[0] ? one : other),
	};
}

/** The server that is not this one. */
export function otherServer({ servers }: Cluster, than: ServerProcess): ServerProcess {
	const other = servers.find((server) => server !== than);
	if (other === undefined) {
		throw new Error("there is no other server");
	}
	return other;
}

/** Writes tasks for the controllers: `task-0` and on, of these titles. */
export async function writeTasks({ client }: Life, titles: readonly string[]): Promise<void> {
	for (const [index, title] of titles.entries()) {
		const data = create(LabelSchema, { title });
		await client.write({ resource: resourceOf(Task, { id: idOf(Task, `task-${index}`), data }) });
	}
}

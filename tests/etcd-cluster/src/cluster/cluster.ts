import { randomUUID } from "node:crypto";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { ServerProcess } from "./server-process.ts";

/** Servers that share an etcd. */
export interface Cluster {
	readonly members: readonly EtcdProcess[];
	readonly servers: readonly ServerProcess[];
	/** The prefix of all keys of the servers. */
	readonly prefix: string;
	/** Ends all processes, and deletes their data. */
	dispose(): Promise<void>;
}

/** Starts a cluster on this machine. Each server asks another member first. */
export async function startCluster(size: {
	readonly members: number;
	readonly servers: number;
	/** More flags of each server. */
	readonly flags?: readonly string[];
}): Promise<Cluster> {
	const prefix = `/${randomUUID()}`;
	const members = await EtcdProcess.startCluster(size.members);
	const urls = members.map(({ url }) => url);
	const servers = Array.from({ length: size.servers }, (_, index) => {
		const first = index % urls.length;
		return new ServerProcess({
			...(size.flags && { flags: size.flags }),
			prefix,
			endpoints: [...urls.slice(first), ...urls.slice(0, first)],
		});
	});
	const dispose = async () => {
		await Promise.all(servers.map((server) => server.kill()));
		await Promise.all(members.map((member) => member.dispose()));
	};
	try {
		await Promise.all(servers.map((server) => server.start()));
	} catch (error) {
		await dispose();
		throw error;
	}
	return { members, servers, prefix, dispose };
}

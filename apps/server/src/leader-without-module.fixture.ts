import { setTimeout } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { onTestFinished } from "vitest";
import { musicModuleFile, ServerProcess } from "./server-process.fixture.ts";

/** A client of a server, once it listens. */
export async function clientOf(server: ServerProcess) {
	const transport = createGrpcTransport({ baseUrl: await server.listening() });
	return createClient(ResourceService, transport);
}

/** Resolves once the condition holds; otherwise the test times out. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
	while (!(await condition())) {
		await setTimeout(50);
	}
}

/** A server without modules that holds the lease, on its own etcd, and a function that starts one with the module. */
export async function startLeaderWithoutModule() {
	const etcd = await EtcdProcess.start();
	onTestFinished(() => etcd.dispose());
	const args = ["--listen", "127.0.0.1:0", "--storage", "etcd", "--etcd-endpoints", etcd.url];
	const leader = new ServerProcess(...args);
	await leader.logs(/acquired the lease of singleton controllers/);
	const startOther = () => new ServerProcess(...args, "--module", musicModuleFile);
	return { leader: await clientOf(leader), startOther };
}

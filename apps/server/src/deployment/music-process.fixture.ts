import { createClient } from "@connectrpc/connect";
import { ResourceService } from "@plinth/proto";
import { createPlinthTransport } from "@plinth/rpc-client";
import type { EtcdProcess } from "@plinth/storage-etcd/testing";
import { freePort } from "@plinth/test-support/ports";
import { onTestFinished } from "vitest";
import { musicModuleFile, ServerProcess } from "../server-process.fixture.ts";

export type MusicProcess = Awaited<ReturnType<typeof startMusic>>;

/** A server of a deployment of `music` on etcd, in its own process; in the region `r1` unless another one is named. */
export async function startMusic(
	etcd: EtcdProcess,
	{
		metaAddress,
		file,
		region = "r1",
		address,
	}: {
		readonly metaAddress: string;
		readonly file: string;
		readonly region?: string;
		/** What it announces to other deployments. Default: where it listens for them. */
		readonly address?: string;
	},
) {
	const internal = `127.0.0.1:${await freePort()}`;
	const server = new ServerProcess(
		...["--storage=etcd", `--etcd-endpoints=${etcd.url}`, "--listen=127.0.0.1:0"],
		...[`--module=${musicModuleFile}`, `--internal-listen=${internal}`],
		...["--deployment-service=music", `--deployment-region=${region}`],
		...[`--deployment-meta-addresses=${metaAddress}`, `--deployment-credential-file=${file}`],
		...(address === undefined ? [] : [`--deployment-address=${address}`]),
	);
	const transport = createPlinthTransport({ baseUrl: await server.listening() });
	onTestFinished(() => transport.close());
	return {
		server,
		internal: `http://${internal}`,
		client: createClient(ResourceService, transport),
	};
}

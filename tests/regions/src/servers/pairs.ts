import { planOf } from "@plinth/example-regions/plan";
import { Regions } from "@plinth/example-regions/regions";
import type { ServerProcess } from "@plinth/example-regions/server-process";
import type { Random } from "@plinth/runtime";
import type { EtcdProcess } from "@plinth/storage-etcd/testing";

/** The ports of the second servers follow those of the first. */
const secondPorts = 50;

/** Two servers for each deployment, all on one etcd, with a prefix for each deployment. */
export function pairsOf(
	members: readonly EtcdProcess[],
	{ dataDirectory, basePort }: { readonly dataDirectory: string; readonly basePort: number },
): Regions {
	const endpoints = members.map(({ url }) => url).join(",");
	const metas = planOf(basePort).filter(({ service }) => service === "meta");
	const regions = new Regions({
		...{ dataDirectory, basePort },
		moreMetaAddresses: metas.map(
			({ internalPort }) => `http://127.0.0.1:${internalPort + secondPorts}`,
		),
		versions: { devices: "v1" },
		storage: (deployment) => [
			"--storage=etcd",
			`--etcd-endpoints=${endpoints}`,
			`--etcd-prefix=/${deployment}`,
		],
	});
	for (const plan of planOf(basePort)) {
		const { name, port, internalPort } = plan;
		regions.add({
			...plan,
			server: `${name}-2`,
			port: port + secondPorts,
			internalPort: internalPort + secondPorts,
		});
	}
	return regions;
}

/** The servers of a deployment. */
export function serversOf(regions: Regions, deployment: string): readonly ServerProcess[] {
	return [...regions.servers.values()].filter(({ plan }) => plan.name === deployment);
}

/** Whether another server of the same deployment is ready. */
export async function hasReadySibling(regions: Regions, server: ServerProcess): Promise<boolean> {
	const siblings = serversOf(regions, server.plan.name).filter((each) => each !== server);
	const ready = await Promise.all(siblings.map(isReady));
	return ready.includes(true);
}

async function isReady({ address, pid }: ServerProcess): Promise<boolean> {
	if (pid === undefined) {
		return false;
	}
	const response = await fetch(`${address}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(
		() => undefined,
	);
	return response?.ok ?? false;
}

/** A server of a deployment that runs, any of them; a stopped one if none does. */
export function anyServer(regions: Regions, deployment: string, random: Random): ServerProcess {
	const servers = serversOf(regions, deployment);
	const running = servers.filter(({ pid }) => pid !== undefined);
	const among = running.length > 0 ? running : servers;
	const chosen = among[Math.floor(random.next() * among.length)];
	if (chosen === undefined) {
		throw new Error(`${deployment} has no server`);
	}
	return chosen;
}

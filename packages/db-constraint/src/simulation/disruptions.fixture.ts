import type { SimulatedDeployment } from "./participants.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/** Crashes or stalls a server of the meta deployment: without others, no deployment can register for a while. */
async function crashMeta(sim: SimulationContext, isRunning: () => boolean): Promise<void> {
	const { meta } = sim;
	const server = meta.servers[sim.below(meta.servers.length)];
	if (server !== undefined && isRunning() && sim.happens(0.2)) {
		server.stall(sim.random.next() * sim.pick([1_000, 8_000, 20_000, 60_000]));
	} else if (server !== undefined && isRunning()) {
		meta.crash(server);
		await sim.wait(sim.random.next() * sim.pick([0, 1_000, 20_000, 120_000]));
		if (isRunning()) {
			meta.start();
		}
	}
}

/** Disables deployments, and enables them again, as operators do. */
export async function disable(sim: SimulationContext, isRunning: () => boolean): Promise<void> {
	while (isRunning()) {
		await sim.wait(sim.random.next() * sim.pick([1_000, 20_000]));
		const deployment = sim.deployments[sim.below(sim.deployments.length)];
		const name = deployment === undefined ? "" : registeredName(sim, deployment);
		await sim.meta.disable(name, true);
		await sim.wait(sim.random.next() * sim.pick([1_000, 20_000, 60_000]));
		await sim.meta.disable(name, false);
	}
	for (;;) {
		for (const name of sim.meta.disabled()) {
			await sim.meta.disable(name, false);
		}
		await sim.wait(10_000);
	}
}

/** Crashes servers between any two steps, and restarts them. */
export async function crash(sim: SimulationContext, isRunning: () => boolean): Promise<void> {
	const { random } = sim;
	const { crashEveryMs } = sim.faults;
	while (isRunning() && crashEveryMs !== Number.POSITIVE_INFINITY) {
		await sim.wait(-Math.log(1 - random.next()) * crashEveryMs);
		for (let turns = sim.below(30); turns > 0; turns--) {
			await sim.runtime.scheduler.pause();
		}
		if (sim.happens(0.2)) {
			void crashMeta(sim, isRunning);
			continue;
		}
		const deployment = sim.deployments[sim.below(sim.deployments.length)];
		const server = deployment?.servers[sim.below(deployment.servers.length)];
		if (isRunning() && server !== undefined && sim.happens(0.2)) {
			server.stall(random.next() * sim.pick([1_000, 8_000, 20_000, 60_000]));
		} else if (isRunning() && deployment !== undefined && server !== undefined) {
			deployment.crash(server);
			const downMs = random.next() * sim.pick([0, 1_000, 20_000, 120_000]);
			void sim.wait(downMs).then(() => {
				if (isRunning()) {
					deployment.start();
				}
			});
		}
	}
}

/** Cuts deployments off from one server of the meta deployment, or from all, for a while. */
export async function split(sim: SimulationContext, isRunning: () => boolean): Promise<void> {
	const { random, meta } = sim;
	const { splitEveryMs } = sim.faults;
	while (isRunning() && splitEveryMs !== Number.POSITIVE_INFINITY) {
		await sim.wait(-Math.log(1 - random.next()) * splitEveryMs);
		if (!isRunning()) {
			break;
		}
		const names = [meta.name, ...sim.deployments.map(({ info }) => info.name)];
		const address = meta.addresses[sim.below(meta.addresses.length)] ?? "";
		const isTotal = sim.happens(0.3);
		const cut = isTotal ? names : names.filter(() => sim.happens(0.5));
		sim.splits.cut(cut, isTotal ? meta.addresses : [address]);
		sim.trace.add(meta.name, () => `${isTotal ? "all servers" : address}: cut off from ${cut}`);
		await sim.wait(random.next() * sim.pick([1_000, 20_000, 120_000]));
		sim.splits.cut([], []);
	}
}

/** A successor has another name if the Deployment of its predecessor still exists. */
export function registeredName({ meta }: SimulationContext, { info }: SimulatedDeployment): string {
	return meta.nameOf(info.uid) ?? info.name;
}

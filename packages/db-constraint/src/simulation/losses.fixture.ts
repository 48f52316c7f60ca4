import type { SimulatedDeployment, SimulatedMetaDeployment } from "./participants.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/** What happens to a deployment, once in a run. */
const losses = {
	"restored from a backup": restore,
	"restored from a backup, and its former Deployment deleted": (sim, deployment) =>
		restore(sim, deployment, true),
	"Deployment deleted while its servers ran": deleteRunning,
	"Deployment deleted while its servers ran, and the message arrived again that had registered it":
		deleteAndRegisterAgain,
	"Deployment deleted while its servers had stopped, which then started": deleteStopped,
	"Deployment deleted after its servers had stopped permanently": abandon,
} satisfies Record<string, Loss>;

type Loss = (sim: SimulationContext, deployment: SimulatedDeployment) => Promise<unknown>;

/** The losses to draw from; the more frequent ones are listed several times. */
const names = [
	"restored from a backup",
	"restored from a backup",
	"restored from a backup",
	"restored from a backup, and its former Deployment deleted",
	"Deployment deleted while its servers ran",
	"Deployment deleted while its servers ran",
	"Deployment deleted while its servers ran, and the message arrived again that had registered it",
	"Deployment deleted while its servers had stopped, which then started",
	"Deployment deleted after its servers had stopped permanently",
	"Deployment deleted after its servers had stopped permanently",
] as const;

/** Whether a loss has happened. */
type Outcome = "done" | "not possible";

/** Restores a deployment, or deletes its Deployment, while users work. */
export async function lose(sim: SimulationContext): Promise<void> {
	const deployment = sim.deployments[sim.below(sim.deployments.length)];
	if (deployment !== undefined) {
		const name = sim.pick(names);
		if ((await losses[name](sim, deployment)) !== "not possible") {
			sim.losses.push(name);
		}
	}
}

/** All of its servers stop, and its storage goes back to what it was a while ago. */
async function restore(
	sim: SimulationContext,
	deployment: SimulatedDeployment,
	isDeleted = false,
): Promise<void> {
	const first = sim.random.next() * 0.6;
	const second = first + (0.85 - first) * sim.random.next();
	await steps(sim, deployment, first);
	const uid = deployment.info.uid;
	const restoreBackup = deployment.backUp();
	await steps(sim, deployment, second);
	await halt(sim, deployment);
	const when = isDeleted ? sim.pick(["stopped", "started", "later"]) : undefined;
	if (when === "stopped") {
		await deleteDeployment(sim, uid);
	}
	restoreBackup();
	deployment.resume();
	if (when === "later") {
		await sim.wait(sim.random.next() * sim.pick([1_000, 20_000, 60_000]));
	}
	if (when === "started" || when === "later") {
		await deleteDeployment(sim, uid);
	}
}

/** Its servers must give up the uid, and register again. */
async function deleteRunning(
	sim: SimulationContext,
	deployment: SimulatedDeployment,
): Promise<void> {
	await steps(sim, deployment, sim.random.next() * 0.85);
	await deleteDeployment(sim, deployment.info.uid);
}

/** The network may deliver a message twice. */
async function deleteAndRegisterAgain(
	sim: SimulationContext,
	deployment: SimulatedDeployment,
): Promise<Outcome> {
	await steps(sim, deployment, sim.random.next() * 0.85);
	const { uid } = deployment.info;
	if (!(await deleteDeployment(sim, uid))) {
		return "not possible";
	}
	await sim.wait(sim.random.next() * sim.pick([0, 100, 20_000]));
	while (!(await sim.meta.registerAgain(uid))) {
		await sim.wait(200);
	}
	return "done";
}

/** Its servers register again when they start. */
async function deleteStopped(
	sim: SimulationContext,
	deployment: SimulatedDeployment,
): Promise<void> {
	await steps(sim, deployment, sim.random.next() * 0.85);
	await halt(sim, deployment);
	await deleteDeployment(sim, deployment.info.uid);
	await sim.wait(sim.random.next() * sim.pick([0, 1_000, 20_000]));
	deployment.resume();
}

/** Operators delete its Deployment because it will have no servers any longer. */
async function abandon(sim: SimulationContext, deployment: SimulatedDeployment): Promise<Outcome> {
	await steps(sim, deployment, 0.2 + sim.random.next() * 0.65);
	await halt(sim, deployment);
	if (!(await deleteDeployment(sim, deployment.info.uid))) {
		deployment.resume();
		return "not possible";
	}
	deployment.abandon();
	return "done";
}

/**
 * Restores the meta deployment: it has forgotten what was registered, changed and deleted since the backup, which may be
 * older than all other registrations.
 */
export async function restoreMeta(sim: SimulationContext): Promise<void> {
	const { meta } = sim;
	const first = sim.pick([0, sim.random.next() * 0.6]);
	const second = first + (0.85 - first) * sim.random.next();
	await meta.whenRegistered;
	await (first > 0 ? stepsTaken(sim, first) : turns(sim));
	const restoreBackup = meta.backUp();
	await stepsTaken(sim, second);
	await halt(sim, meta);
	restoreBackup();
	meta.resume();
	sim.losses.push("meta deployment restored from a backup");
}

/** Waits until users have taken this part of their steps and the deployment is registered. */
async function steps(
	sim: SimulationContext,
	{ info }: SimulatedDeployment,
	part: number,
): Promise<void> {
	while (info.uid === "") {
		await sim.wait(50);
	}
	await stepsTaken(sim, part);
}

/** Waits until users have taken this part of their steps. */
async function stepsTaken(sim: SimulationContext, part: number): Promise<void> {
	while (sim.steps.all === 0 || sim.steps.taken < part * sim.steps.all) {
		await sim.wait(50);
	}
	await turns(sim);
}

/** Lets other steps run, some of them. */
async function turns(sim: SimulationContext): Promise<void> {
	for (let left = sim.below(30); left > 0; left--) {
		await sim.runtime.scheduler.pause();
	}
}

/** Stops all servers for a while: some stop in order. */
async function halt(
	sim: SimulationContext,
	deployment: SimulatedDeployment | SimulatedMetaDeployment,
): Promise<void> {
	if (sim.happens(0.3)) {
		const stopped = Promise.all(deployment.servers.map((server) => server.stop()));
		await Promise.race([stopped, sim.wait(10_000)]);
	}
	deployment.halt();
	await sim.wait(sim.random.next() * sim.pick([0, 1_000, 20_000, 60_000]));
}

/**
 * An operator deletes a Deployment, as soon as a server of the meta deployment does it. Returns false if it is not registered
 * for minutes: a restored meta deployment lacks a deployment that nobody else knew of until its servers report.
 */
async function deleteDeployment(sim: SimulationContext, uid: string): Promise<boolean> {
	for (let tries = 0; tries < 3_000; tries++) {
		if (await sim.meta.delete(uid)) {
			return true;
		}
		await sim.wait(200);
	}
	return false;
}

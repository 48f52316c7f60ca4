import { Deployment, namespaces, regions, services } from "./deployment.fixture.ts";
import { cleanUp } from "./janitor.fixture.ts";
import { MetaDeployment } from "./meta.fixture.ts";
import type { Violation } from "./observer.fixture.ts";
import type { SimulatedDeployment, SimulatedServer } from "./participants.fixture.ts";
import { unsettled } from "./settled.fixture.ts";
import { SimulationContext } from "./simulation-context.fixture.ts";
import { serverOf, User } from "./users.fixture.ts";

/** What came of one seed. */
export interface Outcome {
	readonly seed: number;
	/** Absent where all promises were kept. */
	readonly violation?: Violation;
	/** Empty unless it was asked for. */
	readonly trace: readonly string[];
}

/** How long things may take to settle once nothing goes wrong any more. */
const settlingMs = 20 * 60_000;

/** Runs one seed: users work while things go wrong; then nothing does, and everything settles. */
export async function simulate(seed: number, isTracing = false): Promise<Outcome> {
	const sim = new SimulationContext(seed, isTracing, (it) => new MetaDeployment(it));
	const { trace, observer } = sim;
	try {
		await run(sim);
	} catch (failure) {
		observer.violation(
			3,
			failure instanceof Error ? (failure.stack ?? failure.message) : `${failure}`,
		);
	} finally {
		for (const deployment of sim.deployments) {
			for (const server of deployment.servers) {
				server.crash();
			}
		}
		for (const { lifetime } of sim.meta.servers) {
			lifetime.end();
		}
	}
	const [violation] = observer.violations;
	return { seed, trace: trace.lines, ...(violation && { violation }) };
}

async function run(sim: SimulationContext): Promise<void> {
	const { scheduler } = sim.runtime;
	const isBroken = () => sim.observer.violations.length > 0;
	for (const service of services) {
		for (const region of regions) {
			sim.deployments.push(new Deployment(sim, service, region));
		}
	}
	let working = true;
	const perDeployment = sim.pick([1, 1, 2]);
	const late = sim.pick([0, 0, 1_000, 20_000]);
	void sim.wait(sim.random.next() * late).then(() => sim.meta.start());
	for (const deployment of sim.deployments) {
		void sim
			.wait(sim.random.next() * sim.pick([0, late]))
			.then(() => deployment.begin(perDeployment));
	}
	await scheduler.advance(late + 5_000);
	if (sim.happens(0.15)) {
		void disable(sim, () => working);
	}
	const users = ["ann", "bob", "cyd", "dan"].map((name) => new User(sim, name));
	const janitor = new User(sim, "janitor");
	void keepClean(sim, janitor);
	void crash(sim, () => working);
	for (const deployment of sim.deployments) {
		if (sim.switches) {
			void switchSchema(sim, deployment);
		}
	}
	const work = Promise.all(users.map((user) => user.work(sim.workload.steps))).then(() => {
		working = false;
	});
	await scheduler.until(() => !working || isBroken(), { limitMs: 24 * 3_600_000 });
	if (isBroken()) {
		return;
	}
	await work;
	sim.stopFaults();
	if (sim.meta.servers.length === 0) {
		sim.meta.start();
	}
	for (const deployment of sim.deployments) {
		for (let missing = perDeployment - deployment.servers.length; missing > 0; missing--) {
			deployment.start();
		}
	}
	await scheduler.advance(5_000);
	if (sim.happens(0.8)) {
		void releaseAll(sim, janitor);
	}
	for (let passed = 0; passed < settlingMs && !isBroken(); passed += 60_000) {
		await scheduler.advance(60_000);
		if (passed >= 120_000 && unsettled(sim.observer.records) === undefined) {
			return;
		}
	}
	const problem = unsettled(sim.observer.records);
	if (problem !== undefined && !isBroken()) {
		sim.observer.violation(3, problem);
	}
}

async function keepClean(sim: SimulationContext, janitor: User): Promise<void> {
	for (;;) {
		await sim.wait(10_000);
		await Promise.all(sim.deployments.map((each) => cleanUp(sim, each, janitor)));
	}
}

/** Users take away their finalizers, whenever something that is being deleted has one. */
async function releaseAll(sim: SimulationContext, user: User): Promise<void> {
	for (;;) {
		for (const { deployment, resource } of [...sim.observer.records.resources.values()]) {
			const server = serverOf(sim, deployment);
			if (server !== undefined && resource.id !== undefined) {
				const { name, tenancy } = resource.id;
				await user.attempt(server, [
					`release ${name}`,
					(it) => user.release(it, name, tenancy?.namespace ?? namespaces[0]),
				]);
			}
		}
		await sim.wait(20_000);
	}
}

/**
 * The schema of a deployment changes under those who write, once or twice; servers with the older one go
 * after a while. Some of those with the newer one are killed while they derive what it says.
 */
async function switchSchema(
	sim: SimulationContext,
	deployment: SimulatedDeployment,
): Promise<void> {
	for (let times = sim.pick([0, 1, 1, 2]); times > 0; times--) {
		await sim.wait(sim.random.next() * sim.pick([100, 5_000, 60_000]));
		deployment.switchTo(sim.pick(deployment.service.schemas));
		for (const server of deployment.servers) {
			await sim.wait(sim.random.next() * sim.pick([0, 1_000, 30_000]));
			restart(deployment, server);
			if (sim.happens(0.5)) {
				const next = deployment.servers.at(-1);
				for (let turns = sim.below(60); turns > 0; turns--) {
					await sim.runtime.scheduler.pause();
				}
				restart(deployment, next);
			}
		}
	}
}

function restart(deployment: SimulatedDeployment, server: SimulatedServer | undefined): void {
	if (server !== undefined && deployment.servers.includes(server)) {
		deployment.crash(server);
		deployment.start();
	}
}

/** Nobody can be registered for a while, and pictures stay as they are. */
async function crashMeta(sim: SimulationContext, goesOn: () => boolean): Promise<void> {
	const { meta } = sim;
	const [server] = meta.servers;
	if (server !== undefined && goesOn()) {
		meta.crash(server);
		await sim.wait(sim.random.next() * sim.pick([0, 1_000, 20_000, 120_000]));
		if (goesOn()) {
			meta.start();
		}
	}
}

/** Operators disable deployments, and enable them again. */
async function disable(sim: SimulationContext, goesOn: () => boolean): Promise<void> {
	while (goesOn()) {
		await sim.wait(sim.random.next() * sim.pick([1_000, 20_000]));
		const { name = "" } = sim.deployments[sim.below(sim.deployments.length)]?.info ?? {};
		sim.meta.disable(name, true);
		await sim.wait(sim.random.next() * sim.pick([1_000, 20_000, 60_000]));
		sim.meta.disable(name, false);
	}
}

/** Servers crash between any two steps, and come back. */
async function crash(sim: SimulationContext, goesOn: () => boolean): Promise<void> {
	const { random } = sim;
	const { crashEveryMs } = sim.faults;
	while (goesOn() && crashEveryMs !== Number.POSITIVE_INFINITY) {
		await sim.wait(-Math.log(1 - random.next()) * crashEveryMs);
		for (let turns = sim.below(30); turns > 0; turns--) {
			await sim.runtime.scheduler.pause();
		}
		if (sim.happens(0.2)) {
			void crashMeta(sim, goesOn);
			continue;
		}
		const deployment = sim.deployments[sim.below(sim.deployments.length)];
		const server = deployment?.servers[sim.below(deployment.servers.length)];
		if (goesOn() && deployment !== undefined && server !== undefined) {
			deployment.crash(server);
			const downMs = random.next() * sim.pick([0, 1_000, 20_000, 120_000]);
			void sim.wait(downMs).then(() => {
				if (goesOn()) {
					deployment.start();
				}
			});
		}
	}
}

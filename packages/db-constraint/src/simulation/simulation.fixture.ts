import { alpha, Deployment, namespaces, regions, services } from "./deployment.fixture.ts";
import { crash, disable, registeredName, split } from "./disruptions.fixture.ts";
import { checkForetold } from "./foretold.fixture.ts";
import { cleanUp } from "./janitor.fixture.ts";
import { lose, restoreMeta } from "./losses.fixture.ts";
import { MetaDeployment } from "./meta.fixture.ts";
import type { Violation } from "./observer.fixture.ts";
import type {
	SimulatedDeployment,
	SimulatedServer,
	SimulatedService,
} from "./participants.fixture.ts";
import { checkPromptness } from "./promptness.fixture.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";
import { unsettled } from "./settled.fixture.ts";
import { SimulationContext, type SimulationOptions } from "./simulation-context.fixture.ts";
import { serverOf, User } from "./users.fixture.ts";

/** The outcome of one seed. */
export interface Outcome {
	readonly seed: number;
	/** The first broken promise, if any. */
	readonly violation?: Violation;
	/** Empty unless tracing is on. */
	readonly trace: readonly string[];
	/** What deployments have lost. */
	readonly losses: readonly string[];
}

/** After this time a server that stops is killed. */
const stopLimitMs = 10_000;

/** The share of its steps that a user takes in a small simulation. */
const smallShare = 0.6;

/** How long everything may take to settle after the last fault. */
const settlingMs = 20 * 60_000;

/** Runs one seed: users work while faults occur; then the faults stop, and everything must settle. */
export async function simulate(seed: number, options: SimulationOptions = {}): Promise<Outcome> {
	const sim = new SimulationContext(seed, options, (it) => new MetaDeployment(it));
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
		for (const server of sim.meta.servers) {
			server.crash();
		}
		sim.end();
	}
	const [violation] = observer.violations;
	// What still ends in the background is of no interest, and happens when the event loop has time.
	return { seed, trace: [...trace.lines], losses: sim.losses, ...(violation && { violation }) };
}

/** The services and regions of the deployments: one of things first. */
function placesOf(sim: SimulationContext): readonly (readonly [SimulatedService, string])[] {
	const all = services.flatMap((service) => regions.map((region) => [service, region] as const));
	const second = sim.isSmall ? 1 + sim.below(all.length - 1) : undefined;
	return second === undefined ? all : all.filter((_, at) => at === 0 || at === second);
}

async function run(sim: SimulationContext): Promise<void> {
	const { scheduler } = sim.runtime;
	const isBroken = () => sim.observer.violations.length > 0;
	for (const [service, region] of placesOf(sim)) {
		sim.deployments.push(new Deployment(sim, service, region));
	}
	let working = true;
	const restored = sim.restoresMeta ? restoreMeta(sim) : Promise.resolve();
	const drawn = sim.pick([1, 1, 2]);
	const perDeployment = sim.sharesAddresses ? 2 : drawn;
	const late = sim.pick([0, 0, 1_000, 20_000]);
	for (const _ of sim.meta.addresses) {
		void sim.wait(sim.random.next() * late).then(() => sim.meta.start());
	}
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
	void split(sim, () => working);
	for (const deployment of sim.deployments) {
		if (sim.switches || sim.versionsDiffer) {
			void switchSchema(sim, deployment);
		}
	}
	const steps = Math.ceil(sim.workload.steps * (sim.isSmall ? smallShare : 1));
	sim.steps.all = users.length * steps;
	const loss = sim.hasLoss ? [lose(sim)] : [];
	const work = Promise.all([...users.map((user) => user.work(steps)), ...loss, restored]).then(
		() => {
			working = false;
		},
	);
	await scheduler.until(() => !working || isBroken(), { limitMs: 24 * 3_600_000 });
	if (isBroken()) {
		return;
	}
	await work;
	sim.stopFaults();
	const { meta } = sim;
	for (let missing = meta.addresses.length - meta.servers.length; missing > 0; missing--) {
		meta.start();
	}
	for (const deployment of sim.deployments) {
		for (let missing = perDeployment - deployment.servers.length; missing > 0; missing--) {
			deployment.start();
		}
	}
	await scheduler.advance(5_000);
	let isSettling = true;
	if (sim.happens(0.8)) {
		void releaseAll(sim, janitor, () => isSettling);
	}
	for (let passed = 0; passed < settlingMs && !isBroken(); passed += 60_000) {
		await scheduler.advance(60_000);
		if (passed >= 120_000 && problemOf(sim) === undefined) {
			isSettling = false;
			await probe(sim, janitor);
			let isChecked = false;
			void checkAtRest(sim, janitor).then(
				() => {
					isChecked = true;
				},
				(failure) => sim.observer.violation(3, `${failure}`),
			);
			await scheduler.until(() => isChecked || isBroken(), { limitMs: 3_600_000 });
			return;
		}
	}
	const problem = problemOf(sim);
	if (problem !== undefined && !isBroken()) {
		sim.observer.violation(3, problem);
	}
}

/** What can be checked only once everything has settled. */
async function checkAtRest(sim: SimulationContext, janitor: User): Promise<void> {
	await checkPromptness(sim, janitor);
	if (sim.foretells) {
		await checkForetold(sim, janitor);
	}
}

function problemOf(sim: SimulationContext): string | undefined {
	return (
		unsettled(sim.observer.records) ??
		unreachable(sim) ??
		sim.meta.problem() ??
		unusedRegistration(sim)
	);
}

/** In the end no Deployment is left that its storage has never used. */
function unusedRegistration({ meta, observer }: SimulationContext): string | undefined {
	const identities = [...observer.records.identities.values()];
	const unused = meta.registered().find((uid) => !identities.some((each) => each.has(uid)));
	return unused && `${meta.nameOf(unused)} is registered, and its storage has never used that`;
}

/** In the end the servers of each deployment that run are known, and no others. */
function unreachable(sim: SimulationContext): string | undefined {
	for (const deployment of sim.deployments.filter(({ isGone }) => !isGone)) {
		const { info, servers, sharedAddress } = deployment;
		const running = servers.map(({ address }) => address).sort();
		const recorded = [...deployment.endpoints()].sort();
		if (recorded.join() !== running.join()) {
			return `${info.name} names ${recorded} as its servers, and has ${running}`;
		}
		const registered = sim.meta.addressOf(registeredName(sim, deployment)) ?? "no address";
		const announced = sharedAddress === undefined ? running : [sharedAddress];
		if (!announced.includes(registered)) {
			return `${info.name} is registered at ${registered}, and its servers are at ${announced}`;
		}
	}
	return undefined;
}

/** In the end each deployment takes writes: promise 3. */
async function probe(sim: SimulationContext, user: User): Promise<void> {
	const { scheduler } = sim.runtime;
	for (const deployment of sim.deployments.filter(({ isGone }) => !isGone)) {
		let isWritten = false;
		for (let tries = 0; tries < 60 && !isWritten; tries++) {
			const server = serverOf(sim, deployment);
			isWritten = server !== undefined && (await scheduler.run(user.probe(server)));
			await scheduler.advance(1_000);
		}
		if (!isWritten) {
			sim.observer.violation(3, `${deployment.info.name} takes no writes`);
		}
	}
}

async function keepClean(sim: SimulationContext, janitor: User): Promise<void> {
	for (;;) {
		await sim.wait(10_000);
		await Promise.all(sim.deployments.map((each) => cleanUp(sim, each, janitor)));
	}
}

/** Users remove their finalizers from all resources that are being deleted. */
async function releaseAll(
	sim: SimulationContext,
	user: User,
	isNeeded: () => boolean,
): Promise<void> {
	while (isNeeded()) {
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
 * Switches the schema of a deployment during writes, up to two times, or the versions that it has, four times. Servers with
 * the older schema are replaced after a while. Some servers with the newer one crash while they derive references.
 */
async function switchSchema(
	sim: SimulationContext,
	deployment: SimulatedDeployment,
): Promise<void> {
	const { versionsDiffer } = sim;
	for (let times = versionsDiffer ? 4 : sim.pick([0, 1, 1, 2]); times > 0; times--) {
		await sim.wait(sim.random.next() * sim.pick([100, 5_000, 60_000]));
		const next = versionsDiffer ? nextVersions(deployment) : sim.pick(deployment.service.schemas);
		deployment.switchTo(next, versionsDiffer && sim.happens(0.05));
		for (const server of deployment.servers) {
			await sim.wait(sim.random.next() * sim.pick([0, 1_000, 30_000]));
			if (sim.happens(0.5)) {
				await Promise.race([server.stop(), sim.wait(stopLimitMs)]);
			}
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

/**
 * Adds a version. `alpha` drops v2 again, which may be refused. What is stored in v1 needs v1, and so does the code of
 * `beta` that has written v2.
 */
function nextVersions({ schema, service }: SimulatedDeployment): SimulatedSchema {
	const { v1, both, v2 } = service.versions;
	const drops = schema === both && service.name === alpha.name;
	return schema === v2 ? v2 : drops ? v1 : both;
}

function restart(deployment: SimulatedDeployment, server: SimulatedServer | undefined): void {
	if (server !== undefined && deployment.servers.includes(server)) {
		deployment.crash(server);
		deployment.start();
	}
}

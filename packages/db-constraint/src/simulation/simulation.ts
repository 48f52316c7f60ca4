import { Deployment, namespaces, regions, services } from "./deployment.ts";
import { cleanUp } from "./janitor.ts";
import type { Violation } from "./observer.ts";
import type { Server } from "./server.ts";
import { unsettled } from "./settled.ts";
import { serverOf, User } from "./users.ts";
import { World } from "./world.ts";

/** What came of one seed. */
export interface Outcome {
	readonly seed: number;
	/** Absent where all promises were kept. */
	readonly violation?: Violation;
	/** Empty unless it was asked for. */
	readonly story: readonly string[];
}

/** How long things may take to settle once nothing goes wrong any more. */
const settlingMs = 20 * 60_000;

/** Runs one seed: users work while things go wrong; then nothing does, and everything settles. */
export async function simulate(seed: number, tells = false): Promise<Outcome> {
	const world = new World(seed, tells);
	const { story, observer } = world;
	try {
		await run(world);
	} catch (failure) {
		observer.violation(
			3,
			failure instanceof Error ? (failure.stack ?? failure.message) : `${failure}`,
		);
	} finally {
		for (const deployment of world.deployments) {
			for (const server of deployment.servers) {
				server.crash();
			}
		}
		for (const { life } of world.meta.servers) {
			life.end();
		}
	}
	const [violation] = observer.violations;
	return { seed, story: story.lines, ...(violation && { violation }) };
}

async function run(world: World): Promise<void> {
	const { scheduler } = world.runtime;
	const isBroken = () => world.observer.violations.length > 0;
	for (const service of services) {
		for (const region of regions) {
			world.deployments.push(new Deployment(world, service, region));
		}
	}
	let working = true;
	const perDeployment = world.pick([1, 1, 2]);
	const late = world.pick([0, 0, 1_000, 20_000]);
	void world.pass(world.random.next() * late).then(() => world.meta.start());
	for (const deployment of world.deployments) {
		void world
			.pass(world.random.next() * world.pick([0, late]))
			.then(() => deployment.begin(perDeployment));
	}
	await scheduler.advance(late + 5_000);
	if (world.happens(0.15)) {
		void disable(world, () => working);
	}
	const users = ["ann", "bob", "cyd", "dan"].map((name) => new User(world, name));
	const janitor = new User(world, "janitor");
	void keepClean(world, janitor);
	void crash(world, () => working);
	for (const deployment of world.deployments) {
		if (world.switches) {
			void switchSchema(world, deployment);
		}
	}
	const work = Promise.all(users.map((user) => user.work(world.habits.things))).then(() => {
		working = false;
	});
	await scheduler.until(() => !working || isBroken(), { limitMs: 24 * 3_600_000 });
	if (isBroken()) {
		return;
	}
	await work;
	world.clearUp();
	if (world.meta.servers.length === 0) {
		world.meta.start();
	}
	for (const deployment of world.deployments) {
		for (let missing = perDeployment - deployment.servers.length; missing > 0; missing--) {
			deployment.start();
		}
	}
	await scheduler.advance(5_000);
	if (world.happens(0.8)) {
		void releaseAll(world, janitor);
	}
	for (let passed = 0; passed < settlingMs && !isBroken(); passed += 60_000) {
		await scheduler.advance(60_000);
		if (passed >= 120_000 && unsettled(world.observer.records) === undefined) {
			return;
		}
	}
	const problem = unsettled(world.observer.records);
	if (problem !== undefined && !isBroken()) {
		world.observer.violation(3, problem);
	}
}

async function keepClean(world: World, janitor: User): Promise<void> {
	for (;;) {
		await world.pass(10_000);
		await Promise.all(world.deployments.map((each) => cleanUp(world, each, janitor)));
	}
}

/** Users take away their finalizers, whenever something that is being deleted has one. */
async function releaseAll(world: World, user: User): Promise<void> {
	for (;;) {
		for (const { deployment, resource } of [...world.observer.records.resources.values()]) {
			const server = serverOf(world, deployment);
			if (server !== undefined && resource.id !== undefined) {
				const { name, tenancy } = resource.id;
				await user.attempt(server, [
					`release ${name}`,
					(it) => user.release(it, name, tenancy?.namespace ?? namespaces[0]),
				]);
			}
		}
		await world.pass(20_000);
	}
}

/**
 * The schema of a deployment changes under those who write, once or twice; servers with the older one go
 * after a while. Some of those with the newer one are killed while they derive what it says.
 */
async function switchSchema(world: World, deployment: Deployment): Promise<void> {
	for (let times = world.pick([0, 1, 1, 2]); times > 0; times--) {
		await world.pass(world.random.next() * world.pick([100, 5_000, 60_000]));
		deployment.switchTo(world.pick(deployment.service.schemas));
		for (const server of deployment.servers) {
			await world.pass(world.random.next() * world.pick([0, 1_000, 30_000]));
			restart(deployment, server);
			if (world.happens(0.5)) {
				const next = deployment.servers.at(-1);
				for (let turns = world.below(60); turns > 0; turns--) {
					await world.runtime.scheduler.pause();
				}
				restart(deployment, next);
			}
		}
	}
}

function restart(deployment: Deployment, server: Server | undefined): void {
	if (server !== undefined && deployment.servers.includes(server)) {
		deployment.crash(server);
		deployment.start();
	}
}

/** Nobody can be registered for a while, and pictures stay as they are. */
async function crashMeta(world: World, goesOn: () => boolean): Promise<void> {
	const { meta } = world;
	const [server] = meta.servers;
	if (server !== undefined && goesOn()) {
		meta.crash(server);
		await world.pass(world.random.next() * world.pick([0, 1_000, 20_000, 120_000]));
		if (goesOn()) {
			meta.start();
		}
	}
}

/** Operators disable deployments, and enable them again. */
async function disable(world: World, goesOn: () => boolean): Promise<void> {
	while (goesOn()) {
		await world.pass(world.random.next() * world.pick([1_000, 20_000]));
		const { name = "" } = world.deployments[world.below(world.deployments.length)]?.info ?? {};
		world.meta.disable(name, true);
		await world.pass(world.random.next() * world.pick([1_000, 20_000, 60_000]));
		world.meta.disable(name, false);
	}
}

/** Servers crash between any two steps, and come back. */
async function crash(world: World, goesOn: () => boolean): Promise<void> {
	const { random } = world;
	const { crashEveryMs } = world.weather;
	while (goesOn() && crashEveryMs !== Number.POSITIVE_INFINITY) {
		await world.pass(-Math.log(1 - random.next()) * crashEveryMs);
		for (let turns = world.below(30); turns > 0; turns--) {
			await world.runtime.scheduler.pause();
		}
		if (world.happens(0.2)) {
			void crashMeta(world, goesOn);
			continue;
		}
		const deployment = world.deployments[world.below(world.deployments.length)];
		const server = deployment?.servers[world.below(deployment.servers.length)];
		if (goesOn() && deployment !== undefined && server !== undefined) {
			deployment.crash(server);
			const downMs = random.next() * world.pick([0, 1_000, 20_000, 120_000]);
			void world.pass(downMs).then(() => {
				if (goesOn()) {
					deployment.start();
				}
			});
		}
	}
}

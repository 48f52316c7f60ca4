import { newUlid } from "@plinth/resource";
import type { SimulatedDeployment } from "./participants.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";
import { serverOf, type User } from "./users.fixture.ts";

/** A holder of a target in another deployment, by name. */
interface Pair {
	readonly holder: SimulatedDeployment;
	readonly target: SimulatedDeployment;
}

/** After this time a waiting deletion queries only once a minute. */
const longPausesMs = 115_000;

/**
 * Checks in the end, when all faults are over and everything has settled, that what should happen at once does. Nothing
 * is stuck without that, since all that waits is visited again. So nothing else would show that it is broken.
 */
export async function checkPromptness(sim: SimulationContext, user: User): Promise<void> {
	const [alpha] = sim.deployments;
	const holders = sim.deployments.filter(({ isGone }) => !isGone);
	const holder = holders[sim.below(holders.length)];
	const targets = holders.filter(
		(each) => each !== holder && each.service.name === alpha?.service.name,
	);
	const target = targets[sim.below(targets.length)];
	// Versions that differ refuse some references.
	if (holder === undefined || target === undefined || sim.versionsDiffer) {
		return;
	}
	const check = sim.pick([deletedSoon, failedOver, startedAlone]);
	const problem = await check(sim, user, { holder, target });
	if (problem !== undefined) {
		sim.observer.violation(3, problem);
	}
}

/** A deletion that has waited for long continues at once when its holder releases the resource. */
async function deletedSoon(sim: SimulationContext, user: User, pair: Pair) {
	const waiting = await deletionThatWaits(sim, user, pair);
	await waiting.release();
	return (await within(sim, 10_000, waiting.isOver))
		? undefined
		: `${waiting.what} was not deleted soon after its holder had released it`;
}

/** While one server of a deployment has died, the others respond. */
async function failedOver(sim: SimulationContext, user: User, pair: Pair) {
	const { holder, target } = pair;
	const [first, ...others] = target.servers;
	if (first === undefined || others.length === 0) {
		return deletedSoon(sim, user, pair);
	}
	const name = await targetOf(sim, user, pair);
	// The holder learns which servers there are.
	await done(sim, `reference ${name}`, () => user.reference(holder, target, name));
	target.crash(first);
	const isReferenced = await within(sim, 2_000, () =>
		user.reference(holder, target, name, `${name}-again`),
	);
	target.start();
	return isReferenced
		? undefined
		: `${holder.info.name} could not reference ${target.info.name} while one of its servers was down`;
}

/** Servers start and take writes without the meta deployment. */
async function startedAlone(sim: SimulationContext, user: User, pair: Pair) {
	const { holder, target } = pair;
	const name = await targetOf(sim, user, pair);
	for (const server of sim.meta.servers) {
		sim.meta.crash(server);
	}
	for (const server of holder.servers) {
		holder.crash(server);
		holder.start();
	}
	const isReferenced = await within(sim, 60_000, () => user.reference(holder, target, name));
	sim.meta.start();
	return isReferenced
		? undefined
		: `${holder.info.name} took no writes after it had started without the meta deployment`;
}

/** Writes a target that exists from then on. Returns its name. */
async function targetOf(sim: SimulationContext, user: User, { target }: Pair): Promise<string> {
	const name = `soon-${newUlid(sim.runtime)}`;
	await done(sim, `write ${name}`, () => user.create(target, name));
	return name;
}

/** Begins a deletion that waits for a resource of another deployment, and has waited for long. */
async function deletionThatWaits(sim: SimulationContext, user: User, pair: Pair) {
	const { holder, target } = pair;
	const name = await targetOf(sim, user, pair);
	await done(sim, `reference ${name}`, () => user.reference(holder, target, name));
	await done(sim, `delete ${name}`, async () => {
		const server = serverOf(sim, target);
		return (
			server !== undefined &&
			(await user.attempt(server, [`delete ${name}`, (it) => user.delete(it, name, "default")]))
		);
	});
	await sim.wait(longPausesMs + sim.random.next() * 30_000);
	return {
		what: `${target.info.name}/${name}`,
		isOver: async () => !exists(sim, target, name),
		release: () =>
			done(sim, `release ${name}`, async () => {
				const server = serverOf(sim, holder);
				return (
					server !== undefined &&
					(await user.attempt(server, [
						`release ${name}`,
						(it) => user.release(it, name, "default"),
					])) &&
					!exists(sim, holder, name)
				);
			}),
	};
}

function exists(sim: SimulationContext, deployment: SimulatedDeployment, name: string): boolean {
	return [...sim.observer.records.resources.values()].some(
		(each) => each.deployment === deployment && each.resource.id?.name === name,
	);
}

/** Tries until it succeeds. @throws Error if it does not within a minute. */
async function done(
	sim: SimulationContext,
	what: string,
	attempt: () => Promise<boolean>,
): Promise<void> {
	if (!(await within(sim, 60_000, attempt))) {
		throw new Error(`users could not ${what}`);
	}
}

/** Tries until it succeeds or the time is over. Returns whether it has succeeded. */
async function within(
	sim: SimulationContext,
	limitMs: number,
	attempt: () => Promise<boolean>,
): Promise<boolean> {
	const { clock } = sim.runtime;
	const endMs = clock.monotonic() + limitMs;
	while (clock.monotonic() < endMs) {
		if (await attempt()) {
			return true;
		}
		await sim.wait(500);
	}
	return false;
}

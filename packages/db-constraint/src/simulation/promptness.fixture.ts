import { create } from "@bufbuild/protobuf";
import { type OwnerReference, OwnerReferenceSchema } from "@plinth/proto";
import { isMarkedForDeletion, newUlid } from "@plinth/resource";
import type { SimulatedDeployment, SimulatedServer } from "./participants.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";
import { serverOf, type User } from "./users.fixture.ts";

/** A holder of a target in another deployment, by name. */
interface Pair {
	readonly holder: SimulatedDeployment;
	readonly target: SimulatedDeployment;
}

/** How often shards move: before the time is over after which an owner is asked about again. */
const moveEveryMs = 5_000;

/** How often shards move until a resource without its owner is gone: about twice as long as if they did not. */
const maxMoves = 16;

/** After this time a waiting deletion queries only once a minute. */
const longPausesMs = 115_000;

/**
 * Checks in the end, when all faults are over and everything has settled, that what should happen at once does. Nothing
 * is stuck without that, since all that waits is visited again. So nothing else would show that it is broken.
 */
export async function checkPromptness(sim: SimulationContext, user: User): Promise<void> {
	const [alpha] = sim.deployments;
	const all = sim.deployments.filter(({ isGone }) => !isGone);
	const targetsOf = (holder: SimulatedDeployment | undefined) =>
		all.filter((each) => each !== holder && each.service.name === alpha?.service.name);
	const holder = sim.pickOf(all.filter((each) => targetsOf(each).length > 0));
	const target = sim.pickOf(targetsOf(holder));
	// Versions that differ refuse some references.
	if (holder === undefined || target === undefined || sim.versionsDiffer) {
		return;
	}
	const check = sim.pick([deletedSoon, failedOver, startedAlone, endedInTime]);
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

/** While one server of a deployment has died, the others respond to each server of another one, however idle it was. */
async function failedOver(sim: SimulationContext, user: User, pair: Pair) {
	const { holder, target } = pair;
	const [first, ...others] = target.servers;
	if (first === undefined || others.length === 0 || !follows(pair)) {
		return deletedSoon(sim, user, pair);
	}
	const name = await targetOf(sim, user, pair);
	target.crash(first);
	for (const [at, server] of holder.servers.entries()) {
		const reference = () => user.reference(server, target, name, `${name}-${at}`);
		if (!(await within(sim, 2_000, reference))) {
			return `${holder.info.name} could not reference ${target.info.name} while one of its servers was down`;
		}
	}
	return undefined;
}

/** Whether the holder follows the target's deployment before it has any reference to that. */
function follows({ holder, target }: Pair): boolean {
	const { descriptor } = holder.schema;
	const { name } = target.service;
	return (
		holder.service.name === name || descriptor.imports().some(({ service }) => service === name)
	);
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

/** What ends after a time does, also if its shard moves before that, again and again. */
async function endedInTime(sim: SimulationContext, user: User, pair: Pair) {
	const { holder } = pair;
	const owner = await lostOwner(sim, user, pair);
	const name = `owned-${newUlid(sim.runtime)}`;
	await done(sim, `write ${name}`, () => user.create(holder, name, { ownerReferences: [owner] }));
	let added: SimulatedServer | undefined;
	for (let moves = 0; moves < maxMoves && exists(sim, holder, name); moves++) {
		if (added === undefined) {
			holder.start();
			added = holder.servers.at(-1);
		} else {
			await Promise.race([added.stop(), sim.wait(moveEveryMs)]);
			holder.crash(added);
			added = undefined;
		}
		await sim.wait(moveEveryMs);
	}
	return exists(sim, holder, name)
		? `${holder.info.name}/${name} was not deleted without its owner while shards moved`
		: undefined;
}

/** A reference to an owner that was deleted. */
async function lostOwner(sim: SimulationContext, user: User, pair: Pair): Promise<OwnerReference> {
	const { target } = pair;
	const name = await targetOf(sim, user, pair);
	const { id } = find(sim, target, name)?.resource ?? {};
	await done(sim, `delete ${name}`, async () => {
		const server = serverOf(sim, target);
		return (
			server !== undefined &&
			(await user.attempt(server, [`delete ${name}`, (it) => user.delete(it, name, "default")])) &&
			!exists(sim, target, name)
		);
	});
	return create(OwnerReferenceSchema, {
		name,
		uid: id?.uid ?? "",
		region: target.info.region,
		...(id?.type && { type: id.type }),
		...(id?.tenancy && { tenancy: id.tenancy }),
	});
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
			(await user.attempt(server, [`delete ${name}`, (it) => user.delete(it, name, "default")])) &&
			// A server that lags finds nothing to delete.
			(isMarked(sim, target, name) || !exists(sim, target, name))
		);
	});
	if (!(await within(sim, 10_000, async () => isMarked(sim, holder, name)))) {
		throw new Error(`the deletion of ${name} did not reach its holder soon`);
	}
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
	return find(sim, deployment, name) !== undefined;
}

function isMarked(sim: SimulationContext, deployment: SimulatedDeployment, name: string): boolean {
	const found = find(sim, deployment, name);
	return found !== undefined && isMarkedForDeletion(found.resource);
}

function find(sim: SimulationContext, deployment: SimulatedDeployment, name: string) {
	return [...sim.observer.records.resources.values()].find(
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

import {
	type Controller,
	Phase,
	PhaseSchema,
	Placement,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";

/**
 * Where it runs: of several servers, how many or, if it is one of them, which.
 *
 * @param servers - how many servers the cluster has; 0 or 1 if there is one, or the called server is older.
 */
export function runsOn(controller: Controller, servers: number): string {
	const isInAgents = controller.servers.some(({ isAgent }) => isAgent);
	if (isInAgents) {
		return runsInAgents(controller);
	}
	return servers > 1 ? runsOnSome(controller, servers) : runsOnOne(controller);
}

/** All agents that have loaded its module report on it. */
function runsInAgents({ placement, shards, servers: on }: Controller): string {
	if (placement === Placement.SINGLETON) {
		const running = on.filter(({ phase }) => !withoutLease.includes(phase));
		return running.length === 0 ? "no agent" : running.map(({ server }) => server).join(", ");
	}
	const some = on.length === 1 ? "1 agent" : `${on.length} agents`;
	return shards === undefined || shards.open.length === shards.count
		? some
		: `${some}, ${shards.open.length} of ${shards.count} shards`;
}

function runsOnOne({ placement, shards }: Controller): string {
	switch (placement) {
		case Placement.EACH_SERVER:
			return "each server";
		case Placement.SHARDED:
			return shards === undefined
				? "all shards"
				: `${shards.open.length} of ${shards.count} shards`;
		default:
			return "one server";
	}
}

function runsOnSome({ placement, shards, servers: on }: Controller, servers: number): string {
	if (placement === Placement.SINGLETON) {
		const running = on.filter(({ phase }) => !withoutLease.includes(phase));
		return running.length === 0 ? "no server" : running.map(({ server }) => server).join(", ");
	}
	const some = on.length === servers ? `${servers} servers` : `${on.length} of ${servers} servers`;
	return shards === undefined || shards.open.length === shards.count
		? some
		: `${some}, ${shards.open.length} of ${shards.count} shards`;
}

/** The phases in which a server does not hold the lease that a singleton needs. */
const withoutLease: readonly Phase[] = [Phase.CREATED, Phase.WAITING_FOR_LEASE, Phase.STOPPED];

/** A phase in words. */
export function phaseName(phase: Phase): string {
	return (PhaseSchema.value[phase]?.localName ?? "").toLowerCase().replaceAll("_", " ");
}

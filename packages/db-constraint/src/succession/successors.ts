import { type DeploymentInfo, type Environment, takenOver } from "../registry/environment.ts";

/** The uid of the deployment that is responsible for a uid: its last successor, or itself. */
export function responsibleUid(environment: Environment, uid: string): string {
	return successorsOf(environment, uid).at(-1)?.uid ?? uid;
}

/**
 * Whether the responsible successor of the deployment has not established its references yet. Those before it need not:
 * it has established all that it has taken over from them.
 */
export function isSuccessionPending(environment: Environment, uid: string): boolean {
	return successorsOf(environment, uid).at(-1)?.established === false;
}

/** The known predecessors of a deployment: what it has taken over, and what these have. */
export function predecessorsOf(
	environment: Environment,
	deployment: DeploymentInfo,
): ReadonlySet<string> {
	const found = new Set(takenOver(deployment));
	for (const uid of found) {
		const known = environment.byUid(uid);
		for (const each of known === undefined ? [] : takenOver(known)) {
			found.add(each);
		}
	}
	found.delete(deployment.uid);
	return found;
}

/** The chain of successors of a deployment. Each occurs once, even if they name each other in a cycle. */
function successorsOf(environment: Environment, uid: string): readonly DeploymentInfo[] {
	const successors = new Map<string, DeploymentInfo>();
	for (let next = environment.successorOf(uid); next && !successors.has(next.uid); ) {
		successors.set(next.uid, next);
		next = environment.successorOf(next.uid);
	}
	return [...successors.values()];
}

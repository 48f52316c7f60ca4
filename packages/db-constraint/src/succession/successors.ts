import type { DeploymentInfo, Environment } from "../registry/environment.ts";

/** The uid of the deployment that is responsible for a uid: its last successor, or itself. */
export function responsibleUid(environment: Environment, uid: string): string {
	return successorsOf(environment, uid).at(-1)?.uid ?? uid;
}

/** Whether some successor of the deployment has not established its references yet. */
export function isSuccessionPending(environment: Environment, uid: string): boolean {
	return successorsOf(environment, uid).some(({ established }) => established === false);
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

import type { DeploymentInfo, Environment } from "./environment.ts";

/** The deployment that answers for a uid now: the last of its successors, or itself. */
export function responsibleUid(environment: Environment, uid: string): string {
	return successorsOf(environment, uid).at(-1)?.uid ?? uid;
}

/** Whether some successor of the deployment has not established yet what it references. */
export function isSuccessionPending(environment: Environment, uid: string): boolean {
	return successorsOf(environment, uid).some(({ established }) => established === false);
}

/** The successors of a deployment, in their order; each once, whatever they say of each other. */
function successorsOf(environment: Environment, uid: string): readonly DeploymentInfo[] {
	const successors = new Map<string, DeploymentInfo>();
	for (let next = successorOf(environment, uid); next && !successors.has(next.uid); ) {
		successors.set(next.uid, next);
		next = successorOf(environment, next.uid);
	}
	return [...successors.values()];
}

function successorOf(environment: Environment, uid: string): DeploymentInfo | undefined {
	return [environment.self, ...environment.deployments()].find(
		({ predecessorUid }) => predecessorUid === uid && uid !== "",
	);
}

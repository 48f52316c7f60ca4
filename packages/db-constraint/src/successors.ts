import type { DeploymentInfo, Environment } from "./environment.ts";

/** The deployment that answers for a uid now: the last of its successors, or itself. */
export function answersFor(environment: Environment, uid: string): string {
	let last = uid;
	for (let next = successorOf(environment, last); next; next = successorOf(environment, last)) {
		last = next.uid;
	}
	return last;
}

/** Whether some successor of the deployment has not established yet what it references. */
export function isBeingSucceeded(environment: Environment, uid: string): boolean {
	for (let next = successorOf(environment, uid); next; next = successorOf(environment, next.uid)) {
		if (next.established === false) {
			return true;
		}
	}
	return false;
}

function successorOf(environment: Environment, uid: string): DeploymentInfo | undefined {
	return [environment.self, ...environment.deployments()].find(
		({ predecessorUid }) => predecessorUid === uid && uid !== "",
	);
}

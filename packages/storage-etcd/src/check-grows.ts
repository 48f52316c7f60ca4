import { Inconsistent } from "@plinth/storage";

/**
 * Checks a revision that etcd has answered against one that was known before it was asked. They only
 * grow, unless etcd was put back to a backup: then what this server knows has never been.
 *
 * @throws Inconsistent
 */
export function checkGrows(known: number, answered: number): void {
	if (answered < known) {
		throw new Inconsistent(
			`etcd is at revision ${answered}, before revision ${known} that this server has seen: where a backup was restored, restart the servers`,
		);
	}
}

/**
 * Where a controller is. A run goes through the second line, and from any of its phases to
 * `stopping`:
 *
 *   created ─▶ waiting-for-lease ─▶
 *              initializing ─▶ priming ─▶ running ─▶ stopping
 *          ─▶ stopped, or backing-off ─▶ waiting-for-lease or initializing again
 *
 * Only in `running` do mappers and reconcilers run, and it is entered only when all priming watches
 * have ended.
 */
export type Phase =
	| "created"
	| "waiting-for-lease"
	| "initializing"
	| "priming"
	| "running"
	| "stopping"
	| "backing-off"
	| "stopped";
